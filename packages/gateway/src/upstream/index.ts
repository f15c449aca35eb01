export type { BackoffOptions } from './backoff.ts'
export type { LogLevel } from './connection.ts'
export { createUpstream, type UpstreamDeps, type UpstreamLogLine } from './create-upstream.ts'
export { createReaper, type Reaper } from './reaper.ts'
export {
  type McpTool,
  type Upstream,
  type UpstreamCall,
  UpstreamError,
  type UpstreamErrorCode,
  type UpstreamState,
  type UpstreamStatus,
  UPSTREAM_STATUSES,
} from './upstream.ts'
