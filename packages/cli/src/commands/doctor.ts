import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { connect } from 'node:net'
import path from 'node:path'
import { isObject } from '@toolgate/values/json'
import { messageOf } from '@toolgate/values'
import { ConfigFileError, type GatewayConfig, loadConfig, readConfig, type RunningGateway } from '@toolgate/gateway'
import { listenUrlOf } from '../address.ts'
import { hostOf, readClientFile } from '../clients/client-file.ts'
import { type ClientRow, CLIENTS } from '../clients/table.ts'
import type { ExitName } from '../exit.ts'
import { type Io, painter, printable, printJson, printLine } from '../io.ts'
import { findAgent } from '../project/callers.ts'
import { openConfig } from '../project/config-file.ts'
import { readyText } from '../notes.ts'
import { keysPath } from '../project/keys-file.ts'
import { secretFiles } from '../project/secret-files.ts'
import { findUnusableFiles } from '../project/store-files.ts'
import { describeNotRun } from './check.ts'
import { checkGateway, type Finding, isHealthy } from './doctor-gateway.ts'
import { checkSurroundings, mendOf } from './doctor-servers.ts'
import { count } from '../render.ts'
import { nextPort, type ServeDeps, startUnseen } from './serve.ts'
import { nextCommand, quoted } from '../next-command.ts'

export interface DoctorOptions {
  /** The configuration. Default: `toolgate.yaml`. If that does not exist, the running gateway is checked. */
  readonly config?: string | undefined
  readonly url?: string
  readonly key?: string
  /** `false` with `--no-start`. */
  readonly start: boolean
  readonly json?: boolean
}

/** `toolgate doctor`: prints the problems of this installation and their solutions. Changes nothing. */
export async function doctorCommand(
  options: DoctorOptions,
  { io, start }: Pick<ServeDeps, 'io' | 'start'>,
): Promise<ExitName> {
  const findings: Finding[] = [checkNode()]
  const { config: file = 'toolgate.yaml', start: mayStart, ...target } = options
  const { url, key } = target
  const isElsewhere = url !== undefined || key !== undefined || (options.config === undefined && !existsSync(file))
  const running = isElsewhere ? await checkGateway(target, io) : undefined
  const config = running ? undefined : await readFile(file, mayStart, io, findings)
  if (running) findings.push(...running, ...(existsSync(file) ? [] : [NOT_HERE]))
  if (config) {
    findings.push(
      ...checkFiles(config),
      ...(await checkStores(config)),
      await checkPort(config, file),
      ...(await checkClocks(config)),
    )
    if (options.start)
      findings.push(...(await checkSurroundings(config, io.env)), ...(await checkServers(config, start, io.env)))
  }
  findings.push(...CLIENTS.flatMap((client) => checkClient(client, io)))
  if (options.json) printJson(io.stdout, { ok: findings.every(({ level }) => level !== 'error'), findings })
  else printFindings(findings, io)
  return findings.some(({ level }) => level === 'error') ? 'no' : 'ok'
}

const NOT_HERE: Finding = {
  level: 'ok',
  about: 'toolgate.yaml',
  text: 'it is not in this folder, so only the running gateway was looked at',
}

function checkNode(): Finding {
  // The command does not start under an older version.
  return { level: 'ok', about: 'Node', text: process.version }
}

const UNSET = /the environment variable (\w+) is not set/

/** Reads the configuration. Commands of secrets run only if servers are started. */
async function readFile(file: string, start: boolean, io: Io, findings: Finding[]): Promise<GatewayConfig | undefined> {
  if (!existsSync(file)) {
    findings.push({ level: 'error', about: file, text: 'there is no such file', mend: 'toolgate init' })
    return undefined
  }
  try {
    const how = { env: io.env, packagesFrom: [import.meta.filename] }
    const config = start ? await readConfig(file, how) : loadConfig(file, how)
    const absent = config.servers.flatMap((server) => server.absent ?? [])
    findings.push({ level: 'ok', about: file, text: 'it is valid' }, ...absent.map((one) => toFinding(file, one)))
    if (config.notRun)
      findings.push({
        level: 'warn',
        about: file,
        text: describeNotRun(config.notRun),
        mend: nextCommand('doctor', { config: file }),
      })
    for (const { line, column, path: at, message } of config.warnings ?? [])
      findings.push({ level: 'warn', about: `${file}:${line}:${column}`, text: `${at}: ${message}` })
    return config
  } catch (error) {
    if (!(error instanceof ConfigFileError)) throw error
    findings.push(...error.problems.map((one) => toFinding(file, one)))
    return undefined
  }
}

function toFinding(file: string, { line, column, path: at, message }: ConfigFileError['problems'][number]): Finding {
  const [, variable] = UNSET.exec(message) ?? []
  const mend =
    variable === undefined
      ? `edit ${file}, line ${line}; then: ${nextCommand(`check ${quoted(file)}`)}`
      : `export ${variable}=…`
  return { level: 'error', about: `${file}:${line}:${column}`, text: `${at ? `${at}: ` : ''}${message}`, mend }
}

/** Checks that only the owner can read files with keys, and that the folders of the gateway are writable. */
function checkFiles({ file, callers, audit, state }: GatewayConfig): readonly Finding[] {
  const hasKeys = callers.some(({ demoKey }) => demoKey !== undefined && !demoKey.startsWith('demo-'))
  const secrets = [...(hasKeys ? [file] : []), keysPath(file), ...secretFiles(file)].filter((one) => existsSync(one))
  const open = process.platform === 'win32' ? [] : secrets.filter((one) => (statSync(one).mode & 0o077) !== 0)
  const written = [audit.path, state?.path].flatMap((one) => (one === undefined ? [] : [nearestFolder(one)]))
  const locked = [...new Set(written)].filter((folder) => !mayWrite(folder))
  return [
    ...open.map((one): Finding => ({
      level: 'warn',
      about: one,
      text: 'it holds keys or secrets, and other users of this machine can read it',
      mend: `chmod go= ${one}`,
    })),
    ...locked.map((one): Finding => ({
      level: 'error',
      about: one,
      text: 'the audit or the state is kept there, and it cannot be written to',
      mend: `chmod u+rwx ${one}`,
    })),
  ]
}

async function checkStores(config: GatewayConfig): Promise<readonly Finding[]> {
  const mend = `edit ${config.file}: another path; or ${nextCommand('restore <backup> --force', { config: config.file })}`
  const unusable = await findUnusableFiles(config)
  return unusable.map(({ path: about, why: text }) => ({ level: 'error', about, text, mend }))
}

function nearestFolder(file: string): string {
  const folder = path.dirname(file)
  return existsSync(folder) || folder === file ? folder : nearestFolder(folder)
}

function mayWrite(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK | constants.X_OK)
    return true
  } catch {
    return false
  }
}

const ASK_MS = 2_000

async function checkPort({ listen }: GatewayConfig, file: string): Promise<Finding> {
  const url = listenUrlOf(listen)
  if (listen.port === 0 || !(await isTaken(new URL(url))))
    return { level: 'ok', about: url, text: 'the port is free', mend: nextCommand('serve', { config: file }) }
  if (await isHealthy(url)) return { level: 'ok', about: url, text: 'a gateway runs there' }
  return {
    level: 'error',
    about: url,
    text: 'another program has the port',
    mend: nextCommand(`serve --port ${nextPort(listen.port)}`, { config: file }),
  }
}

function isTaken({ hostname, port }: URL): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const socket = connect({ host: hostname.replace(/^\[|\]$/g, ''), port: Number(port), timeout: ASK_MS })
  socket.once('connect', () => resolve(true))
  for (const event of ['error', 'timeout']) socket.once(event, () => resolve(false))
  return promise.finally(() => socket.destroy())
}

const MAX_SKEW_MS = 60_000

/**
 * Compares the clock with remote servers. A wrong clock makes the gateway refuse tokens, and expire approvals early or
 * late.
 */
async function checkClocks({ servers }: GatewayConfig): Promise<readonly Finding[]> {
  const origins = new Set(
    // This request would not go through a proxy.
    servers.flatMap(({ url, command, proxy }) =>
      url !== undefined && command === undefined && !proxy ? [new URL(url).origin] : [],
    ),
  )
  const findings = [...origins].map(async (origin): Promise<readonly Finding[]> => {
    const answer = await fetch(origin, { method: 'HEAD', signal: AbortSignal.timeout(ASK_MS) }).catch(() => undefined)
    const theirs = Date.parse(answer?.headers.get('date') ?? '')
    const skewMs = Math.abs(Date.now() - theirs)
    if (!(skewMs > MAX_SKEW_MS)) return []
    const text = `its clock and that of this machine differ by ${count(Math.round(skewMs / 1000), 'second')}`
    return [{ level: 'warn', about: origin, text, mend: 'timedatectl set-ntp true' }]
  })
  return (await Promise.all(findings)).flat()
}

/** Starts the gateway without serving it, and returns its problems. */
async function checkServers(
  config: GatewayConfig,
  start: ServeDeps['start'],
  env: Io['env'],
): Promise<readonly Finding[]> {
  const gateway = await startUnseen(config, start)
  try {
    await gateway.ready
    // The problems of a waiting server were already reported, each with its line.
    const waiting = new Set(config.servers.filter(({ absent }) => absent).map(({ name }) => name))
    const rows = gateway.servers().filter(({ name }) => !waiting.has(name))
    const servers = rows.map((row): Finding => {
      const { name, status, reason } = row
      const about = `server ${name}`
      if (status === 'ready') return { level: 'ok', about, text: readyText(row) }
      return { level: 'error', about, text: reason ?? status, mend: mendOf(config, row, env) }
    })
    return [...servers, ...(await checkPolicy(config, gateway))]
  } finally {
    await gateway.close()
  }
}

/** Checks that each agent sees a tool. If one sees none, the policy is probably a mistake. */
async function checkPolicy({ callers, file }: GatewayConfig, { gate }: RunningGateway): Promise<readonly Finding[]> {
  const [first] = gate.catalog.snapshot().tools
  if (!first) return []
  const agents = callers.filter((one) => one.for === 'mcp')
  const seen = await Promise.all(
    agents.map(async ({ caller }) => ({ user: caller.user, size: (await gate.view(caller)).size })),
  )
  return seen.flatMap(({ user = 'an agent', size }): readonly Finding[] =>
    size > 0
      ? []
      : [
          {
            level: 'warn',
            about: user,
            text: 'the policy shows this agent no tool',
            mend: nextCommand(`why ${quoted(first.id)} --as ${quoted(user)}`, { config: file }),
          },
        ],
  )
}

/** Checks a client. If its file names a missing command, it starts nothing and shows little. */
function checkClient(client: ClientRow, io: Io): readonly Finding[] {
  const host = hostOf(io.env)
  const files = [client.user?.(host), client.project === undefined ? undefined : path.join(host.cwd, client.project)]
  return files.flatMap((file): readonly Finding[] => {
    if (file === undefined || !existsSync(file)) return []
    try {
      const { servers } = readClientFile(client, file)
      return [...servers].flatMap(([name, entry]) => checkEntry(client, `${client.title}: ${name}`, entry))
    } catch (error) {
      return [{ level: 'warn', about: client.title, text: messageOf(error) }]
    }
  })
}

/** Checks an entry, if it starts this command. */
function checkEntry({ id }: ClientRow, about: string, entry: unknown): readonly Finding[] {
  const args = isObject(entry) && Array.isArray(entry['args']) ? entry['args'].map(String) : []
  if (!args.includes('stdio') || !isObject(entry)) return []
  const config = args[args.indexOf('--config') + 1]
  const entryConfig = args.includes('--config') && config && existsSync(config) ? config : undefined
  const as = args.includes('--as') ? args[args.indexOf('--as') + 1] : undefined
  const mend = nextCommand(`connect ${id}${as === undefined ? '' : ` --as ${quoted(as)}`}`, { config: entryConfig })
  const programs = [entry['command'], args[0]].filter((one) => typeof one === 'string' && path.isAbsolute(one))
  const gone = [...programs.map(String), ...(args.includes('--config') && config ? [config] : [])].find(
    (file) => !existsSync(file),
  )
  if (gone !== undefined) return [{ level: 'error', about, text: `it names ${gone}, which is gone`, mend }]
  if (!args.includes('--config') || config === undefined) return []
  try {
    findAgent(openConfig(config), as)
    return [{ level: 'ok', about, text: `it starts ${config}${as === undefined ? '' : ` as ${as}`}` }]
  } catch (error) {
    return [
      { level: 'error', about, text: messageOf(error), mend: nextCommand(`connect ${id} --as <user>`, { config }) },
    ]
  }
}

const STYLES = { ok: 'green', warn: 'yellow', error: 'red' } as const

function printFindings(findings: readonly Finding[], io: Io): void {
  const paint = painter(io.stdout, io.env)
  for (const { level, about, text, mend } of findings) {
    printLine(
      io.stdout,
      `${paint(STYLES[level], level.padEnd(5))}  ${paint('bold', printable(about))}  ${printable(text)}`,
    )
    if (mend !== undefined && level !== 'ok') printLine(io.stdout, `       ${paint('cyan', printable(mend))}`)
  }
  const errors = findings.filter(({ level }) => level === 'error').length
  const warnings = findings.filter(({ level }) => level === 'warn').length
  printLine(io.stdout, `\n${count(errors, 'error')}, ${count(warnings, 'warning')}`)
}
