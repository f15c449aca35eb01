export type { BridgeHints, BridgeOutcome } from './bridge.ts'
export { serveStdio, type ServeStdioOptions } from './serve-stdio.ts'
