import { Schema, type SchemaDefinition } from 'mongoose';

// What the schemas are made of.

/** By which the server removes what has expired. */
export const EXPIRY_INDEX = 'expiry';

export const text = { type: String, required: true } as const;
export const date = { type: Date, required: true } as const;
export const count = { type: Number, required: true } as const;
export const flag = { type: Boolean, required: true } as const;
export const maybeText = { type: String, default: null } as const;
export const maybeDate = { type: Date, default: null } as const;

// `minimize` would drop {} payloads; `strict: throw` turns a field the schema does not know into an error.
export const options = {
  versionKey: false,
  minimize: false,
  strict: 'throw',
  autoIndex: false,
  autoCreate: false,
} as const;

export function part(definition: SchemaDefinition): Schema {
  return new Schema(definition, { _id: false });
}
