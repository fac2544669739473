export { serveHttp, type HttpServer, type ServeOptions } from './serve.js';
export type { HttpOptions } from '../config/http-options.js';
