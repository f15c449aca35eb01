export { listensAt } from '../util/identity.ts'
export { type BridgeOptions, StdioBridge } from './bridge.ts'
export type { BridgeHints, BridgeOutcome } from './reports.ts'
export { serveStdio, type ServeStdioOptions } from './serve-stdio.ts'
