/** What is expected of a connection string. Without a database's name the driver would silently use `test`. */
export const MONGO_URI = "a connection string with the database's name, like mongodb://host:27017/app";

export function isMongoUri(value: unknown): value is string {
  return typeof value === 'string' && /^mongodb(\+srv)?:\/\/[^/\s]+\/[^?\s]+/.test(value);
}
