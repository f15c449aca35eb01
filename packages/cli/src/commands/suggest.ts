import { readRecords, type Suggestion, suggestPolicy, type WhatIf, whatIf, withInputs } from '@toolgate/change'
import { didYouMean } from '@toolgate/values'
import { configuredRules, type GatewayConfig, loadConfig, readCatalogFile, readConfig } from '@toolgate/gateway'
import type { TargetOptions } from '../target.ts'
import { CliError, type ExitName } from '../exit.ts'
import { INSTALLED_FROM } from '../files.ts'
import { type Io, painter, printable, printJson, printLine } from '../io.ts'
import { sealedInputsOf } from '../project/sealed-audit.ts'
import { gatewayOf } from '../next-command.ts'
import { suggestionWarnings, suggestionYaml } from '../policy-tests/suggestion-yaml.ts'
import { count } from '../render.ts'
import { withReader } from './audit.ts'
import { endOf } from './missing-records.ts'
import type { ServeDeps } from './serve.ts'
import { takeLiveSnapshot } from './snapshot.ts'

export interface SuggestCommandOptions extends TargetOptions {
  readonly config: string
  readonly since: number
  readonly role?: string
  readonly catalog?: string
  readonly file?: string
  readonly json?: boolean
}

/** How long before `since` reading starts, in milliseconds, so that labels of runs are known. */
const BEFORE_MS = 86_400_000
const MAX_ROWS = 20

/**
 * `toolgate suggest`: prints the least policy that the recorded calls need, as YAML to review, and the calls that it
 * would refuse. Changes nothing.
 */
export async function suggestCommand(
  options: SuggestCommandOptions,
  { io, start }: Pick<ServeDeps, 'io' | 'start'>,
): Promise<ExitName> {
  const { config: file, catalog, since, role } = options
  const how = { env: io.env, packagesFrom: [INSTALLED_FROM] }
  const config: GatewayConfig = catalog === undefined ? await readConfig(file, how) : loadConfig(file, how)
  if (role !== undefined) checkRole(role, config)
  const snapshot = catalog === undefined ? await takeLiveSnapshot(config, start) : readCatalogFile(catalog)
  const rules = configuredRules(snapshot, config)
  const inputs = await sealedInputsOf(config, options.file, io.env)
  try {
    return await withReader<ExitName>(options, io, async (reader) => {
      const known = () => {
        const read = readRecords(reader, { since: since - BEFORE_MS })
        return inputs ? { ...read, ...withInputs(read.records, inputs, inputs.open) } : read
      }
      const suggestion = await suggestPolicy({ rules, ...known(), since, role })
      const after = { ...rules, policy: suggestion.policy }
      const found = await whatIf({ before: rules, after, ...known(), since, role, hashOf: reader.hashText })
      if (options.json) printJson(io.stdout, { ...suggestion, whatIf: found })
      else print(suggestion, found, { options, io })
      return endOf(found)
    })
  } finally {
    await inputs?.close()
  }
}

/** Checks that a role is configured, because calls are grouped by the roles of callers. @throws {CliError} `usage` */
function checkRole(role: string, { callers }: GatewayConfig): void {
  const roles = [...new Set(callers.flatMap(({ caller }) => caller.roles ?? []))]
  if (roles.includes(role)) return
  throw new CliError(
    'usage',
    `No caller of the configuration has the role ${JSON.stringify(printable(role))}${didYouMean(role, roles)}`,
    {
      hint: `Their roles are ${printable(roles.toSorted().join(', '))}.`,
    },
  )
}

function print(
  suggestion: Suggestion,
  { calls, changed, unknown, rows }: WhatIf,
  { options, io }: { readonly options: SuggestCommandOptions; readonly io: Io },
): void {
  io.stdout.write(suggestionYaml(suggestion, gatewayOf(options)))
  const { stderr } = io
  const paint = painter(stderr, io.env)
  for (const warning of suggestionWarnings(suggestion))
    printLine(stderr, `${paint('yellow', 'warn')}  ${printable(warning)}`)
  printLine(
    stderr,
    `Of ${count(calls, 'recorded call')}, ${changed} would have ended otherwise, and ${unknown} cannot be judged.`,
  )
  for (const { count: times, caller, tool, from, to, rule } of rows.slice(0, MAX_ROWS))
    printLine(stderr, `  ${times} × ${printable(caller)} ${printable(tool)}: ${from} → ${to} by ${printable(rule)}`)
  if (rows.length > MAX_ROWS) printLine(stderr, `  and ${rows.length - MAX_ROWS} more; --json has them`)
}
