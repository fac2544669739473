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
 * Autovacuum would do this within a minute. Without it the planner has no statistics, and a batch of pg-boss takes several
 * times as long.
 */
export async function vacuum(url) {
  await query(url, 'vacuum analyze');
}
