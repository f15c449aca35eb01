export { type Api, createApi } from './api.ts'
export { type Console, createConsole } from './console.ts'
export type { ApiDeps } from './deps.ts'
export { createHealth, type Health, type HealthAnswer } from './health.ts'
