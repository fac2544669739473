import { hostname, userInfo } from 'node:os';

/** Of what is kept as somebody's name. */
const LONGEST = 200;

/**
 * Who runs the command, for the audit collection: `cli:ada@host`. As the operating system has it, and not as a variable of
 * the environment says. A container may run as a user without a name.
 */
export function operatorOf(system = { userInfo, hostname }): string {
  let user: string;
  try {
    user = system.userInfo().username;
  } catch {
    user = `uid-${process.getuid?.() ?? 'unknown'}`;
  }
  return `cli:${user}@${system.hostname()}`.slice(0, LONGEST);
}
