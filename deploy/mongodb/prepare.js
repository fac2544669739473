// For mongosh on a member of a replica set with a key file, over loopback:
//   mongosh --nodb --quiet deploy/mongodb/prepare.js
// Initiates the set, and creates the superuser, the roles of roles.json and the user of the connection string. Existing
// roles and users are updated, so it can be run again at any time.
//   MEMBERS             host:port of each member, separated by commas; the first is the member on this machine
//   ROOT_PASSWORD_FILE  the password of the superuser
//   MONGODB_URI_FILE    the connection string that workers will use: mongodb://USER:PASSWORD@…/chronos?…
//   ROLES               the roles of that user, separated by commas
//   PREFIX              the prefix of the collections, if it is not chronos_
//   ROLES_FILE          the file with the roles (default: roles.json next to this script)
/* global Mongo, sleep, print, require, __dirname */
const { readFileSync } = require('node:fs');
const path = require('node:path');

const env = process.env;
const SET = 'chronos';
const SUPERUSER = 'root';
const ALREADY_INITIALIZED = 23;
const UNAUTHORIZED = 13;
const ROLE_EXISTS = 51002;
const USER_EXISTS = 51003;

const members = env.MEMBERS.split(',');
const password = readFileSync(env.ROOT_PASSWORD_FILE, 'utf8').trim();
const roles = JSON.parse(readFileSync(env.ROLES_FILE ?? path.join(__dirname, 'roles.json'), 'utf8'));
const [, user, userPassword] =
  /^mongodb(?:\+srv)?:\/\/([^:@/]+):([^@/]+)@/.exec(readFileSync(env.MONGODB_URI_FILE, 'utf8').trim()) ?? [];
if (user === undefined) throw new Error('the connection string contains no user and password');

// mongosh awaits its own calls where their value is used, but not in a return statement: with `try { return call() }`, the
// `catch` would miss the error. Hence the variables before each return.

/** Retries until the servers are up, a primary is elected, and the superuser is replicated to the member in use. */
function retryUntilReady(what, attempt) {
  for (let tries = 1; ; tries++) {
    try {
      const result = attempt();
      return result;
    } catch (error) {
      if (tries === 60) throw error;
      if (tries % 10 === 0) print(`${what}: ${error.message}`);
      sleep(1000);
    }
  }
}

function ignoringErrors(codes, attempt) {
  try {
    attempt();
  } catch (error) {
    if (!codes.includes(error.code)) throw error;
  }
}

/** MongoDB allows this without a login over loopback, as long as there is no user. */
function initiate() {
  const local = `mongodb://127.0.0.1:${members[0].split(':')[1]}/admin?directConnection=true`;
  const admin = new Mongo(local).getDB('admin');
  const config = {
    _id: SET,
    // The first one must become primary, because the superuser is created over loopback.
    members: members.map((host, _id) => ({ _id, host, priority: _id === 0 ? 2 : 1 })),
    // Half of the default: work resumes sooner after a primary has failed (docs/reliability.md).
    settings: { electionTimeoutMillis: 5000 },
  };
  ignoringErrors([ALREADY_INITIALIZED, UNAUTHORIZED], () => admin.runCommand({ replSetInitiate: config }));
  if (!admin.hello().isWritablePrimary) throw new Error('not the primary yet');
  const superuser = { createUser: SUPERUSER, pwd: password, roles: ['root'] };
  ignoringErrors([UNAUTHORIZED, USER_EXISTS], () => admin.runCommand(superuser));
}

function connectAsSuperuser() {
  const login = `${SUPERUSER}:${encodeURIComponent(password)}`;
  const all = `mongodb://${login}@${members.join(',')}/admin?replicaSet=${SET}&serverSelectionTimeoutMS=2000`;
  return new Mongo(all).getDB('admin');
}

const admin = retryUntilReady('waiting for the replica set', () => {
  try {
    const db = connectAsSuperuser();
    return db;
  } catch {
    initiate();
    const db = connectAsSuperuser();
    return db;
  }
});

for (const [role, granted] of Object.entries(roles)) {
  const privileges = granted.map(({ resource, actions }) => ({
    resource: {
      ...resource,
      collection: resource.collection.replace(/^chronos_/, () => env.PREFIX || 'chronos_'),
    },
    actions,
  }));
  ignoringErrors([ROLE_EXISTS], () => admin.runCommand({ createRole: role, privileges, roles: [] }));
  admin.runCommand({ updateRole: role, privileges, roles: [] });
}
const account = { pwd: decodeURIComponent(userPassword), roles: env.ROLES.split(',') };
ignoringErrors([USER_EXISTS], () => admin.runCommand({ createUser: decodeURIComponent(user), ...account }));
admin.runCommand({ updateUser: decodeURIComponent(user), ...account });
print(`the replica set ${SET} is ready, and ${user} has the roles ${env.ROLES}`);
