import { toJsonText } from '@toolgate/values/json'
import { type ConfigComparison, compareConfigs, loadConfig, readCatalogFile } from '@toolgate/gateway'
import type { ExitName } from '../exit.ts'
import { INSTALLED_FROM } from '../files.ts'
import { type Io, painter, printable, printJson, printLine } from '../io.ts'
import { count } from '../render.ts'

export interface CompareOptions {
  readonly catalog: string
  readonly json?: boolean
}

/**
 * `toolgate compare`: prints whether a configuration grants no more than another, or a counterexample. Starts nothing.
 */
export async function compareCommand(
  [before, after]: readonly [before: string, after: string],
  { catalog, json }: CompareOptions,
  io: Io,
): Promise<ExitName> {
  const read = (file: string) => loadConfig(file, { env: io.env, packagesFrom: [INSTALLED_FROM] })
  const comparison = await compareConfigs(read(before), read(after), readCatalogFile(catalog))
  if (json) printJson(io.stdout, comparison)
  else print(comparison, SENTENCES[comparison.grantsNoMore](after, before), io)
  return comparison.grantsNoMore === 'yes' ? 'ok' : 'no'
}

const SENTENCES = {
  yes: (after: string, before: string) => `${after} grants no more than ${before}`,
  no: (after: string, before: string) => `${after} grants more than ${before}`,
  unknown: (after: string, before: string) => `whether ${after} grants no more than ${before} is not proven`,
} as const
const COLOURS = { yes: 'green', no: 'red', unknown: 'yellow' } as const
const MAX_SHOWN = 20

function print(
  { grantsNoMore, counterexamples, notCompared, sections }: ConfigComparison,
  sentence: string,
  io: Io,
): void {
  const paint = painter(io.stdout, io.env)
  printLine(io.stdout, `${paint(COLOURS[grantsNoMore], grantsNoMore)}  ${printable(sentence)}`)
  for (const { caller, tool, before, after, input, weakerApproval } of counterexamples.slice(0, MAX_SHOWN)) {
    const of = input === undefined ? '' : ` with ${printable(toJsonText(input))}`
    const more = weakerApproval ? `${after}, and somebody else may approve` : `${after}, and was ${before}`
    printLine(io.stdout, `  ${printable(caller)}: a call of ${printable(tool)}${of} is ${more}`)
  }
  if (counterexamples.length > MAX_SHOWN) printLine(io.stdout, `  and ${counterexamples.length - MAX_SHOWN} more`)
  for (const { caller, tools, why } of notCompared) {
    const shown = tools.slice(0, MAX_SHOWN).map(printable).join(', ')
    const about = tools.length === 0 ? '' : `${count(tools.length, 'tool')} not compared (${shown}), as `
    printLine(io.stdout, `  ${printable(caller)}: ${about}${printable(why)}`)
  }
  if (sections.length > 0)
    printLine(io.stdout, `  these sections differ, and are not proven to grant no more: ${sections.join(', ')}`)
}
