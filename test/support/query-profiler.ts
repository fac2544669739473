import type { mongo } from 'mongoose';
import type { TestDatabase } from './database.js';

export interface QueryStats {
  command: string;
  keys: number;
  documents: number;
  /** Of the executed plan, outermost first. */
  stages: string[];
}

interface Stage {
  stage?: string;
  inputStage?: Stage;
  inputStages?: Stage[];
}

/** Runs the operation under the profiler of the server, and returns its queries on these collections. */
export async function profileQueries(
  database: TestDatabase,
  collections: readonly string[],
  operation: () => Promise<unknown>,
): Promise<QueryStats[]> {
  const db = database.connection.getClient().db(database.connection.name);
  await db.command({ profile: 0 });
  await db.dropCollection('system.profile').catch(() => undefined);
  await db.command({ profile: 2 });
  await operation();
  await db.command({ profile: 0 });
  const ns = { $in: collections.map((name) => `${db.databaseName}.${name}`) };
  return (await db.collection('system.profile').find({ ns }).toArray()).map(toStats);
}

function toStats(entry: mongo.Document): QueryStats {
  return {
    command: entry['op'] as string,
    keys: Number(entry['keysExamined'] ?? 0),
    documents: Number(entry['docsExamined'] ?? 0),
    stages: stagesOf((entry['execStats'] ?? {}) as Stage),
  };
}

function stagesOf({ stage = '', inputStage, inputStages = [] }: Stage): string[] {
  const below = [...inputStages, ...(inputStage === undefined ? [] : [inputStage])];
  return [stage, ...below.flatMap(stagesOf)];
}
