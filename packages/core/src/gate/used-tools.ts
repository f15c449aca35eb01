import { ConfigError, isErrorOf, UnknownToolError } from '@toolgate/values'
import { toCallView, type View } from './view.ts'

/**
 * Returns `hasUsedTool` over the calls of earlier steps. A misspelt name would keep an agent in its first phase forever.
 *
 * The function throws a `ConfigError` with the nearest name for a name that no tool has, if the gate's tools are fixed.
 */
export function hasUsedToolIn(
  view: View,
  calls: () => readonly { readonly tool: string; readonly status: string }[],
): (tool: string) => boolean {
  return (tool) => {
    if (calls().some((call) => call.tool === tool && call.status === 'done')) return true
    try {
      toCallView(view).checkName(tool)
    } catch (cause) {
      if (!isErrorOf(cause, UnknownToolError)) throw cause
      throw new ConfigError('hasUsedTool', cause.message, { cause })
    }
    return false
  }
}
