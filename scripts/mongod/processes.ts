export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** A stopped process (SIGSTOP) hears nothing else until it continues. */
export function resume(pid: number): void {
  if (isAlive(pid)) process.kill(pid, 'SIGCONT');
}
