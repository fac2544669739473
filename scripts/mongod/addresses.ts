export const SET_NAME = 'chronos';
export const DATABASE = 'chronos';

export interface Superuser {
  name: string;
  password: string;
}

export function hostOf(port: number): string {
  return `127.0.0.1:${port}`;
}

export function setUri(hosts: string[], superuser?: Superuser): string {
  if (superuser === undefined) return `mongodb://${hosts.join(',')}/${DATABASE}?replicaSet=${SET_NAME}`;
  const login = `${encodeURIComponent(superuser.name)}:${encodeURIComponent(superuser.password)}`;
  return `mongodb://${login}@${hosts.join(',')}/${DATABASE}?replicaSet=${SET_NAME}&authSource=admin`;
}
