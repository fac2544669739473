import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { confirm } from '../../../src/cli/context.js';
import { Output } from '../../../src/cli/terminal/output.js';
import { ProgressBar } from '../../../src/cli/terminal/progress-bar.js';
import { systemClock } from '../../../src/runtime/system-clock.js';

class Sink {
  text = '';
  readonly isTTY: boolean;
  constructor(isTTY: boolean) {
    this.isTTY = isTTY;
  }
  write(text: string): void {
    this.text += text;
  }
}

describe('confirm', () => {
  /** Answers the question on a terminal; null closes the input. */
  async function ask(answer: string | null): Promise<{ confirmed: boolean; text: string }> {
    const sink = new Sink(true);
    const input = Object.assign(new PassThrough(), { isTTY: true });
    const confirmed = confirm({ err: new Output(sink, {}), input, yes: false }, 'This will cancel 3 jobs.');
    if (answer === null) input.end();
    else input.write(answer);
    return { confirmed: await confirmed, text: sink.text };
  }

  it('asks and accepts only y and yes', async () => {
    assert.deepEqual(await ask('y\n'), {
      confirmed: true,
      text: 'This will cancel 3 jobs. Continue? [y/N]\n',
    });
    assert.equal((await ask(' YES \n')).confirmed, true);
    for (const answer of ['\n', 'n\n', 'yessir\n', null]) assert.equal((await ask(answer)).confirmed, false);
  });

  it('requires --yes without a terminal and does not ask with --yes', async () => {
    const sink = new Sink(false);
    const err = new Output(sink, {});
    const input = new PassThrough();
    await assert.rejects(confirm({ err, input, yes: false }, 'This will cancel 3 jobs.'), {
      code: 'INVALID_ARGUMENT',
      message: /This will cancel 3 jobs\. There is no terminal to ask for confirmation: add --yes/,
    });
    assert.equal(await confirm({ err, input, yes: true }, 'This …'), true);
    assert.equal(sink.text, '');
  });
});

describe('ProgressBar', () => {
  it('is redrawn in place on a terminal and erased at the end', () => {
    const sink = new Sink(true);
    const bar = new ProgressBar(new Output(sink, { NO_COLOR: '1' }), 'retry');
    bar.show(100, 400);
    assert.equal(sink.text, `\rretry ${'█'.repeat(8)}${'░'.repeat(22)} 100 of 400\u001b[K`);
    bar.end();
    assert.ok(sink.text.endsWith('\r\u001b[K'));
  });

  it('writes nothing without a terminal and returns the result of the work', async () => {
    const sink = new Sink(false);
    const bar = new ProgressBar(new Output(sink, {}), 'retry');
    bar.show(1, 2);
    assert.equal(await bar.during(systemClock, Promise.resolve(7)), 7);
    await assert.rejects(bar.during(systemClock, Promise.reject(new Error('broken'))), /broken/);
    assert.equal(sink.text, '');
  });
});

describe('Output', () => {
  it('has colors only on a terminal without NO_COLOR', () => {
    const line = { text: 'x', style: 'red' } as const;
    const print = (isTTY: boolean, env: Record<string, string>): string => {
      const sink = new Sink(isTTY);
      new Output(sink, env).lines(line);
      return sink.text;
    };
    assert.equal(print(true, {}), '\u001b[31mx\u001b[0m\n');
    for (const [isTTY, env] of [
      [true, { NO_COLOR: '1' }],
      [true, { TERM: 'dumb' }],
      [false, {}],
    ] as const)
      assert.equal(print(isTTY, env as Record<string, string>), 'x\n');
  });
});
