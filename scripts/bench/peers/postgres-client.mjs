import pg from 'pg';

export async function connect(url) {
  const client = new pg.Client(url);
  await client.connect();
  return client;
}

export async function query(url, text) {
  const client = await connect(url);
  await client.query(text);
  await client.end();
}

/**
 * What autovacuum does within a minute. Before that the planner knows nothing about the table, and a batch of
 * pg-boss takes several times as long.
 */
export async function settle(url) {
  await query(url, 'vacuum analyze');
}
