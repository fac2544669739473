export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** A process that was stopped (SIGSTOP) handles other signals only after SIGCONT. */
export function resume(pid: number): void {
  if (isAlive(pid)) process.kill(pid, 'SIGCONT');
}
