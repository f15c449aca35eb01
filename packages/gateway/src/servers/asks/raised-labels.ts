import type { CallContext } from '@toolgate/core'
import { isObject } from '@toolgate/values/json'
import { raiseLabels } from '@toolgate/core/call'
import { InputRequired } from '@toolgate/core/toolset'
import type { McpResult } from '@toolgate/mcp'

type RelayedResult = McpResult | InputRequired

/** The key in a result's `_meta` for a list of labels. */
const LABELS = 'dev.toolgate/labels'

/** Returns a result after raising those of its labels that the server's entry accepts. */
export async function withRaised(relayed: Promise<RelayedResult>, call: CallContext, accepts: readonly string[]) {
  const result = await relayed
  await raiseLabels(call, raisedBy(result, accepts))
  return result
}

/** Returns the raised labels. An unreadable list raises all accepted labels. */
function raisedBy(result: RelayedResult, accepts: readonly string[]): readonly string[] {
  if (result instanceof InputRequired || !isObject(result._meta)) return []
  const said: unknown = result._meta[LABELS]
  if (said === undefined) return []
  return Array.isArray(said) ? accepts.filter((label) => said.includes(label)) : accepts
}
