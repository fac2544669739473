import Mocha from 'mocha';

const PATIENCE_MS = 10_000;

/**
 * Mocha's own report, with the totals as the very last line. Whatever the tests leave open keeps the process
 * alive; that is a fault of its own, so it is named and counted instead of being hidden by --exit.
 */
export default class Reporter extends Mocha.reporters.Spec {
  override done(failures: number, finish: (failures: number) => void): void {
    let failed = failures;
    finish(failures);

    const watchdog = setTimeout(() => {
      failed += 1;
      const open = process.getActiveResourcesInfo().join(', ');
      console.error(`The tests are over, but the process does not end. Still open: ${open}`);
      process.exit(1);
    }, PATIENCE_MS);
    watchdog.unref();

    // Mocha sets the exit code in a listener of its own, which `finish` has added before this one.
    process.on('exit', () => {
      process.exitCode = failed === 0 ? process.exitCode : 1;
      const { passes, pending } = this.stats;
      console.log(`${passes} passed, ${failed} failed${pending > 0 ? `, ${pending} skipped` : ''}`);
    });
  }
}
