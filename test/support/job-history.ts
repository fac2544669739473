import type { mongo } from 'mongoose';
import type { JobDocument } from '../../src/domain/job/job.js';
import { readJob, readSomeFields, type StoredJob, toJobId } from '../../src/store/jobs/stored-job.js';
import type { Collections } from '../../src/store/schema/collections.js';

/** One change of one job, from the change stream. */
export interface JobChange {
  jobId: string;
  kind: 'insert' | 'update' | 'delete';
  /** The server's wall clock at the change. */
  at: Date;
  /** The whole document on insert, the changed fields on update. */
  fields: Partial<JobDocument>;
  removed: readonly string[];
}

/** What a removed field means. */
const EMPTY = readSomeFields({ _id: '' });

/** All changes of the jobs of a database from `begin` on, read from the oplog with a change stream. */
export class JobHistory {
  readonly #collections: Collections;
  readonly #from: mongo.Timestamp;

  private constructor(collections: Collections, from: mongo.Timestamp) {
    this.#collections = collections;
    this.#from = from;
  }

  static async begin(collections: Collections): Promise<JobHistory> {
    const hello = await collections.db.admin().command({ hello: 1 });
    return new JobHistory(collections, hello['operationTime'] as mongo.Timestamp);
  }

  /** All changes up to now: writes a marker and reads up to it. */
  async read(): Promise<JobChange[]> {
    const { db, jobs } = this.#collections;
    const markers = db.collection<{ _id: string }>('history-markers');
    const marker = `marker-${crypto.randomUUID()}`;
    const stream = db.watch([], { startAtOperationTime: this.#from, readConcern: 'majority' });
    const changes: JobChange[] = [];
    try {
      await markers.insertOne({ _id: marker });
      for await (const event of stream) {
        const change = event as
          | mongo.ChangeStreamInsertDocument
          | mongo.ChangeStreamUpdateDocument
          | mongo.ChangeStreamDeleteDocument;
        const id = toJobId(change.documentKey?._id);
        if (id === marker) break;
        if (change.ns?.coll === jobs.collectionName) changes.push(toChange(id, change));
      }
    } finally {
      await stream.close();
    }
    return changes;
  }
}

function toChange(
  jobId: string,
  event:
    mongo.ChangeStreamInsertDocument | mongo.ChangeStreamUpdateDocument | mongo.ChangeStreamDeleteDocument,
): JobChange {
  const at = (event as { wallTime?: Date }).wallTime ?? new Date(0);
  switch (event.operationType) {
    case 'insert':
      return {
        jobId,
        kind: 'insert',
        at,
        fields: readJob(event.fullDocument as unknown as StoredJob),
        removed: [],
      };
    case 'update': {
      const { updatedFields, removedFields: removed = [] } = event.updateDescription;
      const emptied = Object.fromEntries(removed.map((field) => [field, EMPTY[field as keyof JobDocument]]));
      return { jobId, kind: 'update', at, fields: { ...emptied, ...updatedFields }, removed };
    }
    case 'delete':
      return { jobId, kind: 'delete', at, fields: {}, removed: [] };
  }
}
