import { clip, type RpcError } from './json-rpc.ts'
import { UpstreamError } from './upstream.ts'

/** Gives the error for a request that was answered with a JSON-RPC error. */
export function rpcError(rpc: RpcError): UpstreamError {
  return new UpstreamError('upstream_rpc', `answered error ${rpc.code}: ${clip(rpc.message)}`, { rpc })
}
