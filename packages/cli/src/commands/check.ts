import {
  ConfigFileError,
  findAuditProblems,
  findDownloads,
  type GatewayConfig,
  loadConfig,
  mayWords,
  readConfig,
  type WarningRow,
} from '@toolgate/gateway'
import { EXITS, type ExitName } from '../exit.ts'
import { INSTALLED_FROM } from '../files.ts'
import { type Io, painter, printable, printJson, printLine } from '../io.ts'
import { mayText, serverNotes } from '../notes.ts'
import { findUnusableFiles } from '../project/store-files.ts'
import { nextCommand } from '../next-command.ts'
import { count } from '../render.ts'
import { type ServeDeps, startUnseen } from './serve.ts'

export interface CheckOptions {
  readonly servers?: boolean
  /** `false` with `--no-secrets`: this machine need not have the values that servers wait for. */
  readonly secrets?: boolean
  readonly json?: boolean
}

/**
 * `toolgate check`: prints every problem and warning of a configuration, with line and column. Starts no server and no
 * command of a secret, unless `--servers` asks for warnings about the servers' tools.
 */
export async function checkCommand(
  file: string,
  options: CheckOptions,
  { io, start }: Pick<ServeDeps, 'io' | 'start'>,
): Promise<ExitName> {
  try {
    const how = { env: io.env, packagesFrom: [INSTALLED_FROM] }
    const config = options.servers === true ? await readConfig(file, how) : loadConfig(file, how)
    const { warnings: names = [], notRun } = config
    const audit = [...(await findAuditProblems(config.audit)), ...(await findStoreProblems(config))]
    const downloads = downloadsOf(config)
    const offered = options.servers === true ? await findOffered(config, start) : { warnings: [], notes: [] }
    const mayAsk = findAsking(config)
    const absent = config.servers.flatMap((server) => server.absent ?? [])
    const isComplete = absent.length === 0 || options.secrets === false
    if (options.json) {
      const notes = offered.notes.map((message) => ({ code: 'server', message }))
      printJson(io.stdout, {
        ok: isComplete,
        problems: [],
        ...(absent.length > 0 && { absent }),
        ...(mayAsk.length > 0 && { mayAsk }),
        ...(notRun && { notRun }),
        ...(downloads.length > 0 && { downloads }),
        warnings: [
          ...names,
          ...audit,
          ...offered.warnings.map((one) => ({ ...config.places?.get(one.path), ...toJson(one) })),
          ...notes,
        ],
      })
    } else {
      const paint = painter(io.stdout, io.env)
      const word = isComplete ? paint('green', 'ok') : paint('yellow', 'starts')
      printLine(io.stdout, `${word}  ${file}: ${summaryOf(config)}`)
      for (const { server, may } of mayAsk)
        printLine(io.stdout, `    ${paint('dim', `server ${printable(server)} ${mayText(may)}`)}`)
      for (const { server, packages } of downloads)
        printLine(io.stdout, `    ${printable(describeDownload(server, packages))}`)
      const texts = [
        ...names.map((one) => lineOf(one, io)),
        ...audit.map(({ message }) => printable(message)),
        ...offered.warnings.map((one) => offeredLine(one, config, io)),
        ...offered.notes,
        ...(notRun ? [describeNotRun(notRun)] : []),
      ]
      for (const one of absent)
        printLine(io.stderr, `${isComplete ? paint('yellow', 'warn') : paint('red', 'error')}  ${lineOf(one, io)}`)
      for (const text of texts) printLine(io.stderr, `${paint('yellow', 'warn')}  ${text}`)
      if (!isComplete) printLine(io.stderr, waitingText(file))
    }
    return isComplete ? 'ok' : 'no'
  } catch (error) {
    if (!(error instanceof ConfigFileError)) throw error
    if (options.json) printJson(io.stdout, { ok: false, problems: error.problems })
    else printProblems(error, io)
    return 'usage'
  }
}

function waitingText(config: string): string {
  const reload = nextCommand('reload', { config })
  return `The gateway starts, and these servers wait until "${reload}" finds the values (exit code ${EXITS.no.code}). Where they are kept elsewhere, as in CI: --no-secrets.`
}

/** Returns the servers that may ask clients for something, with what it is. */
function findAsking({ servers }: GatewayConfig) {
  return servers.map(({ name: server, may }) => ({ server, may: mayWords(may) })).filter(({ may }) => may.length > 0)
}

async function findStoreProblems(config: GatewayConfig): Promise<readonly { code: string; message: string }[]> {
  const unusable = await findUnusableFiles(config)
  return unusable.map(({ path, why }) => ({ code: 'store_unusable', message: `${path}: ${why}` }))
}

/** Returns the packages that the first start of each server downloads. */
function downloadsOf({
  servers,
}: GatewayConfig): readonly { readonly server: string; readonly packages: readonly string[] }[] {
  return servers.flatMap(({ name, command, args }) => {
    const packages = command === undefined ? [] : findDownloads(command, args)
    return packages.length === 0 ? [] : [{ server: name, packages }]
  })
}

/** Returns a sentence about a download, as the first start then takes longer. */
export function describeDownload(server: string, packages: readonly string[]): string {
  return `the first start of "${server}" downloads ${packages.join(', ')}, unless a cache has it`
}

/** Returns a note about the commands of secrets that were not run. */
export function describeNotRun(programs: readonly string[]): string {
  const names = [...new Set(programs)].map(printable).join(', ')
  return `${count(programs.length, 'command')} of secrets not run (${names}), so what they write is not checked`
}

interface Offered {
  readonly warnings: readonly WarningRow[]
  /** Notes about servers that are down, and about tools that are not offered. */
  readonly notes: readonly string[]
}

/** Starts the servers of a configuration, and stops them. Serves, stores and records nothing. */
async function findOffered(config: GatewayConfig, start: ServeDeps['start']): Promise<Offered> {
  const gateway = await startUnseen(config, start)
  try {
    await gateway.ready
    const inFile = new Set(config.warnings?.map(({ path }) => path))
    return {
      warnings: gateway.warnings().filter(({ path }) => !inFile.has(path)),
      notes: serverNotes(gateway.servers()),
    }
  } finally {
    await gateway.close()
  }
}

function toJson({ code, path, text }: WarningRow): {
  readonly code: string
  readonly path: string
  readonly message: string
} {
  return { code, path, message: text }
}

/** Prints each problem on its own line, as `file:line:column: path: message`, and then their number. */
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

/** Returns a warning about a server's tools, with its place in the file if that is known. */
function offeredLine({ path, text: message }: WarningRow, { places }: GatewayConfig, io: Io): string {
  const place = places?.get(path)
  if (place) return lineOf({ ...place, path, message }, io)
  return `${painter(io.stderr, io.env)('bold', `${printable(path)}:`)} ${printable(message)}`
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
  const waiting = servers.filter(({ absent }) => absent).length
  const ofUsers = servers.filter(({ listing }) => listing === 'user').length
  const parts = [
    count(servers.length, 'server'),
    ...(ofUsers === 0 ? [] : [`${ofUsers} with a list for each user`]),
    ...(waiting === 0 ? [] : [`${waiting} waiting`]),
    count(callers.length, 'caller'),
    count(groups.length, 'group'),
    ...(apps.length === 0 ? [] : [count(apps.length, 'app')]),
    count(policy.length, 'policy', 'policies'),
    count(limits.length, 'limit'),
    `audit in ${audit.path ?? audit.store}`,
    ...(warnings.length === 0 ? [] : [count(warnings.length, 'warning')]),
  ]
  return parts.join(', ')
}
