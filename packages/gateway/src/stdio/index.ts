export { listensAt } from '../http/identity.ts'
export { type BridgeHints, type BridgeOptions, type BridgeOutcome, StdioBridge } from './bridge.ts'
export { serveStdio, type ServeStdioOptions } from './serve-stdio.ts'
