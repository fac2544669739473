import { Schema, type SchemaDefinition } from 'mongoose';

/** The name of every TTL index. */
export const EXPIRY_INDEX = 'expiry';

export const text = { type: String, required: true } as const;
export const date = { type: Date, required: true } as const;
export const number = { type: Number, required: true } as const;
export const boolean = { type: Boolean, required: true } as const;
export const optionalText = { type: String, default: null } as const;
export const optionalNumber = { type: Number, default: null } as const;
export const optionalDate = { type: Date, default: null } as const;

// `minimize` would drop {} payloads; `strict: 'throw'` rejects fields that are not in the schema.
export const schemaOptions = {
  versionKey: false,
  minimize: false,
  strict: 'throw',
  autoIndex: false,
  autoCreate: false,
} as const;

export function subdocument(definition: SchemaDefinition): Schema {
  return new Schema(definition, { _id: false });
}
