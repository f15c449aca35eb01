import { ConfigFileError, findAuditProblems, type GatewayConfig, loadConfig } from '@toolgate/gateway'
import { EXITS, type ExitName } from '../exit.ts'
import { type Io, painter, printable, printJson, printLine } from '../io.ts'
import { count } from '../render.ts'

export interface CheckOptions {
  readonly json?: boolean
}

/** `toolgate check`: prints every problem and warning of a configuration, with line and column. Starts nothing. */
export async function checkCommand(file: string, options: CheckOptions, io: Io): Promise<ExitName> {
  try {
    const config = loadConfig(file, { env: io.env, packagesFrom: [import.meta.filename] })
    const { warnings: names = [] } = config
    const audit = await findAuditProblems(config.audit)
    if (options.json) printJson(io.stdout, { ok: true, problems: [], warnings: [...names, ...audit] })
    else {
      const paint = painter(io.stdout, io.env)
      printLine(io.stdout, `${paint('green', 'ok')}  ${file}: ${summaryOf(config)}`)
      for (const text of [...names.map((one) => lineOf(one, io)), ...audit.map(({ message }) => printable(message))])
        printLine(io.stderr, `${paint('yellow', 'warn')}  ${text}`)
    }
    return 'ok'
  } catch (error) {
    if (!(error instanceof ConfigFileError)) throw error
    if (options.json) printJson(io.stdout, { ok: false, problems: error.problems })
    else printProblems(error, io)
    return 'usage'
  }
}

/** Prints each problem on its own line, as `file:line:column: path: message`, and their number. */
export function printProblems({ problems }: ConfigFileError, io: Io): void {
  const paint = painter(io.stderr, io.env)
  for (const problem of problems) printLine(io.stderr, lineOf(problem, io))
  printLine(io.stderr, paint('red', `${count(problems.length, 'problem')} (exit code ${EXITS.usage.code})`))
}

type Problem = ConfigFileError['problems'][number]

function lineOf({ file, line, column, path, message }: Problem, io: Io): string {
  const paint = painter(io.stderr, io.env)
  const place = paint('cyan', `${file}:${line}:${column}:`)
  return `${place} ${path ? `${paint('bold', `${printable(path)}:`)} ` : ''}${printable(message)}`
}

function summaryOf({
  servers,
  callers,
  groups,
  apps = [],
  policy,
  limits,
  audit,
  warnings = [],
}: GatewayConfig): string {
  const parts = [
    count(servers.length, 'server'),
    count(callers.length, 'caller'),
    count(groups.length, 'group'),
    ...(apps.length === 0 ? [] : [count(apps.length, 'app')]),
    count(policy.length, 'policy', 'policies'),
    count(limits.length, 'limit'),
    `audit in ${audit.path ?? 'memory'}`,
    ...(warnings.length === 0 ? [] : [count(warnings.length, 'warning')]),
  ]
  return parts.join(', ')
}
