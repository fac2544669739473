import { Schema, type SchemaDefinition } from 'mongoose';

/** The name of every TTL index. */
export const EXPIRY_INDEX = 'expiry';

export const text = { type: String, required: true } as const;
export const date = { type: Date, required: true } as const;
export const number = { type: Number, required: true } as const;
export const mixed = Schema.Types.Mixed;

/** Fields that are null if they are not set. */
export const optional = {
  text: { type: String, default: null },
  number: { type: Number, default: null },
  date: { type: Date, default: null },
  mixed: { type: mixed, default: null },
} as const;

export function schemaFor(collection: string, definition: SchemaDefinition): Schema {
  return new Schema(definition, {
    collection,
    versionKey: false,
    // Otherwise {} payloads would be dropped.
    minimize: false,
    strict: 'throw',
    autoIndex: false,
    autoCreate: false,
  });
}

export function subdocument(definition: SchemaDefinition): Schema {
  return new Schema(definition, { _id: false });
}
