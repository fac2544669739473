import { Schema, type SchemaDefinition } from 'mongoose';

/** The name of every TTL index. */
export const EXPIRY_INDEX = 'expiry';

export const text = { type: String, required: true } as const;
export const date = { type: Date, required: true } as const;
export const number = { type: Number, required: true } as const;
export const boolean = { type: Boolean, required: true } as const;
export const mixed = Schema.Types.Mixed;

/** Fields that are null if they are not set. */
export const optional = {
  text: { type: String, default: null },
  number: { type: Number, default: null },
  date: { type: Date, default: null },
  mixed: { type: mixed, default: null },
} as const;

/** For the validator and the indexes of a collection. There are no models: operations use the driver. */
export function schemaFor(definition: SchemaDefinition): Schema {
  return new Schema(definition, { versionKey: false });
}

export function subdocument(definition: SchemaDefinition): Schema {
  return new Schema(definition, { _id: false });
}
