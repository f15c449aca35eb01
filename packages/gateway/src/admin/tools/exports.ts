import { readOwnJson, toJsonText } from '@toolgate/values/json'
import { type Redactor } from '@toolgate/values/redact'
import { createGate, type Tool, type View } from '@toolgate/core'
import { expose, EXPOSE_TARGETS, type ExposeError, type ExposeTarget, type ExposeWarning } from '@toolgate/expose'
import type { ToolExport } from '../../model/rows.ts'

/** Returns the tool's export for each provider, whether or not a caller sees it. */
export async function exportTool(tool: Tool, redact: Redactor): Promise<readonly ToolExport[]> {
  const gate = createGate({ tools: [tool] })
  try {
    const view = await gate.view({})
    return EXPOSE_TARGETS.map((target) => exportTo(target, view, redact))
  } finally {
    await gate.close()
  }
}

function exportTo(target: ExposeTarget, view: View, redact: Redactor): ToolExport {
  const { tools, warnings, errors, tokens } = expose(view, target)
  return {
    target,
    definition: redactTexts(plain(tools), redact),
    warnings: warnings.map((warning) => redact.redactText(toSentence(warning))),
    errors: errors.map((error: ExposeError) => redact.redactText(error.message)),
    ...(errors.length > 0 ? {} : { tokens: tokens.count }),
  }
}

function toSentence({ path, feature, from, to, action }: ExposeWarning): string {
  const where = path === '' ? '' : ` at ${path}`
  return `${feature}${where}: ${from} is ${action}${to === undefined ? '' : `, to ${to}`}`
}

/** Returns plain JSON: removes functions, which some SDKs accept, and unwraps a list of one tool. */
function plain(tools: object): unknown {
  const shown: unknown = readOwnJson(toJsonText(tools), 'exact')
  return Array.isArray(shown) && shown.length === 1 ? shown[0] : shown
}

/** Redacts a server's texts. Key names are not considered, as in a schema they are parameters. */
export function redactTexts(value: unknown, redact: Pick<Redactor, 'redactText'>): unknown {
  if (typeof value === 'string') return redact.redactText(value)
  if (Array.isArray(value)) return value.map((item) => redactTexts(item, redact))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, redactTexts(item, redact)]))
}
