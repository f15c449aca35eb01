import { readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { checkShape, errnoOf, messageOf, sha256Hex, shapeOf } from '@toolgate/values'
import { INSTALLED_FROM } from '../files.ts'
import { findUnexplainedAsks } from './ask-warnings.ts'
import { withOtherNames } from './other-names.ts'
import { checkPolicy as checkWithCore } from './policy.ts'
import { createSecretList } from './secret-list.ts'
import type { Section } from './section.ts'
import { SECTIONS } from './sections.ts'
import { findApproverRoleWarnings } from './approver-role-warnings.ts'
import { findApproverWarnings } from './approver-warnings.ts'
import { notifySecrets } from './sections/approvals.ts'
import { findNotifyWarnings } from './notify-warnings.ts'
import { proxySecrets } from './sections/proxy.ts'
import { storeSecrets } from './sections/stores.ts'
import type { GatewayConfig } from './config.ts'
import { reportUnknownKey, type CheckPolicy, keysOf, type Reading } from './reading.ts'
import { ConfigFileError, type ConfigPath } from './problems.ts'
import { findPlaces, findPolicySource } from './places.ts'
import { findOwnerWarnings } from './per-user.ts'
import { findPersonWarnings } from './person-warnings.ts'
import { findPublicUrlWarnings } from './public-url.ts'
import { parseSource, type Source } from './source.ts'
import { type OutputOf, SecretCommands } from './secret-commands.ts'
import { findFetchWarnings } from './fetch-warnings.ts'
import { findIdleWarnings } from './idle-warnings.ts'
import { findNameWarnings } from './warnings.ts'
import { type FillContext, fillText } from './fill.ts'

export interface LoadConfigOptions {
  /** The environment for `${VAR}`. Default: that of the process. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** A text that replaces the file's own. Relative paths still start at the file. */
  readonly text?: string
  /** Further absolute file names from which a server's `package` is resolved, after the configuration's folder. */
  readonly packagesFrom?: readonly string[]
  /**
   * The ids of commands that may run, as in `ran`. If the file names any other command, none runs. Default: all may
   * run.
   */
  readonly mayRun?: readonly string[]
  /** Checks selectors and conditions. Default: the checks of core. */
  readonly checkPolicy?: CheckPolicy
}

const OPTIONS = shapeOf<LoadConfigOptions>({
  env: true,
  text: true,
  packagesFrom: true,
  mayRun: true,
  checkPolicy: true,
})

/**
 * Parses and checks a `toolgate.yaml`. It starts nothing and writes nothing. Commands of `${command:…}` do not run, and
 * a gateway does not start with a configuration that has them.
 *
 * @throws {ConfigFileError} with every problem in the file, each with its line and column
 * @example
 * const config = loadConfig('toolgate.yaml', { env: process.env })
 */
export function loadConfig(file: string, options: LoadConfigOptions = {}): GatewayConfig {
  checkShape('loadConfig', options, OPTIONS)
  const commands = new SecretCommands()
  const config = parseConfig(file, options.text ?? readText(file), options, commands.collect)
  return commands.isEmpty ? config : commands.withoutThem(config)
}

/**
 * Parses and checks a `toolgate.yaml`, and runs the commands of its `${command:…}`, if there is no other problem.
 *
 * @throws {ConfigFileError} with every problem in the file, each with its line and column
 * @example
 * await startGateway(await readConfig('toolgate.yaml'))
 */
export async function readConfig(file: string, options: LoadConfigOptions = {}): Promise<GatewayConfig> {
  checkShape('readConfig', options, OPTIONS)
  const text = options.text ?? readText(file)
  const commands = new SecretCommands()
  const config = parseConfig(file, text, options, commands.collect)
  if (commands.isEmpty) return config
  const { secretCommands = {} } = config
  const ran = commands.idsWith(secretCommands)
  const { mayRun = ran } = options
  if (!ran.every((id) => mayRun.includes(id))) return commands.withoutThem(config)
  const outputOf = await commands.run(secretCommands, path.dirname(config.file))
  return { ...parseConfig(file, text, options, outputOf), ran }
}

function parseConfig(file: string, text: string, options: LoadConfigOptions, outputOf: OutputOf): GatewayConfig {
  const absolute = path.resolve(file)
  const configDir = path.dirname(absolute)
  const env = options.env ?? process.env
  const secrets = createSecretList()
  const source = parseSource(file, text, (written, at) =>
    fillText(written, {
      ...fillContext(at, env, configDir),
      onFilled: secrets.addFilled,
      // A command cannot use the output of another command.
      ...(at[0] === 'secretCommands' ? {} : { outputOf }),
    }),
  )
  const config = readRoot(source, absolute, {
    source,
    configDir,
    packagesFrom: [absolute, INSTALLED_FROM, ...(options.packagesFrom ?? [])],
    env,
    variable(name) {
      const value = Object.hasOwn(env, name) ? env[name] : undefined
      if (value !== undefined) secrets.addFilled(name, value)
      return value
    },
    checkPolicy: options.checkPolicy ?? checkWithCore,
    groupNames: keysOf(source, ['groups']),
  })
  if (source.problems.length > 0)
    throw new ConfigFileError(
      [...source.problems, ...[...source.absent.values()].flat()].toSorted(
        (a, b) => a.line - b.line || a.column - b.column,
      ),
    )
  for (const login of proxySecrets(config)) secrets.addFilled('proxy', login)
  for (const secret of notifySecrets(config.approvals)) secrets.addKey(secret)
  for (const password of storeSecrets(config.stores)) secrets.addKey(password)
  for (const key of inputKeys(config.audit)) secrets.addKey(key)
  for (const { demoKey } of config.callers) if (demoKey !== undefined) secrets.addKey(demoKey)
  const places = findPlaces(source)
  const names = findNameWarnings(config)
  for (const warning of [
    ...names,
    // A clause that matches no name has its own warning.
    ...findIdleWarnings(config, places).filter((idle) => !names.some((name) => name.path === idle.path)),
    ...findApproverWarnings(config),
    ...findApproverRoleWarnings(config),
    ...findUnexplainedAsks(config),
    ...findOwnerWarnings(config),
    ...findPublicUrlWarnings(config),
    ...findPersonWarnings(config),
    ...findNotifyWarnings(config),
    ...findFetchWarnings(config),
  ])
    source.warn(warning)
  return {
    ...config,
    callers: withOtherNames(config),
    ...(config.stores && { text }),
    textHash: sha256Hex(text),
    places,
    policySource: findPolicySource(source, text),
    secrets: secrets.list(),
    ...(source.warnings.length > 0 ? { warnings: source.warnings } : {}),
  }
}

function inputKeys({ inputs }: GatewayConfig['audit']): readonly string[] {
  if (inputs === undefined || typeof inputs === 'string') return []
  return [inputs.key, ...(inputs.olderKeys ?? [])].map(String)
}

const MAX_BYTES = 8 * 1024 * 1024

/**
 * Returns the text of a file. A pipe is rejected, since reading it could block a running gateway forever. @throws
 * {ConfigFileError}
 */
export function readText(file: string): string {
  try {
    const stats = statSync(file)
    if (!stats.isFile() && !stats.isDirectory()) throw new Error('it is not a file')
    if (stats.size > MAX_BYTES) throw new Error(`it has more than ${MAX_BYTES} bytes`)
    return readFileSync(file, 'utf8')
  } catch (cause) {
    const reason = READ_ERRORS.get(errnoOf(cause) ?? '') ?? messageOf(cause)
    throw new ConfigFileError([{ file, line: 1, column: 1, path: '', message: `cannot be read: ${reason}` }], { cause })
  }
}

const READ_ERRORS: ReadonlyMap<string, string> = new Map([
  ['ENOENT', 'there is no such file'],
  ['EISDIR', 'it is a folder'],
  ['EACCES', 'permission denied'],
])

function fillContext(at: ConfigPath, env: FillContext['env'], configDir: string): FillContext {
  const key = at.at(-1)
  const isPolicy = at[0] === 'policy' || (at[0] === 'apps' && at[2] === 'policy')
  return {
    env,
    configDir,
    keeps: at[0] !== 'servers' ? NOTHING : OF_OWNER.has(at[2] ?? '') ? PORT_AND_OWNER : PORT,
    inCondition: isPolicy && (key === 'when' || key === 'unless' || key === 'input'),
  }
}

const NOTHING: ReadonlySet<string> = new Set()
const PORT: ReadonlySet<string> = new Set(['port'])
const PORT_AND_OWNER: ReadonlySet<string> = new Set(['port', 'user', 'tenant'])
/** The keys of a server that may contain the user of an instance. */
const OF_OWNER: ReadonlySet<string | number> = new Set(['args', 'env', 'cwd', 'headers'])

function readRoot(source: Source, file: string, given: Omit<Reading, 'of'>): GatewayConfig {
  if (source.root && !source.root.entries) source.report([], 'expected a mapping with the key "servers"')
  const known = Object.keys(SECTIONS)
  for (const key of keysOf(source, [])) if (!known.includes(key)) reportUnknownKey(source, [], key, known)
  const values = new Map<object, unknown>()
  // The value of a section has the section's type.
  const reading: Reading = { ...given, of: (section) => values.get(section) as never }
  const read = Object.entries(SECTIONS).map(([key, section]: [string, Section<unknown>]) => {
    const value = section.read(reading, key)
    values.set(section, value)
    return [key, value] as const
  })
  // The table of sections has a row of the right type for each key.
  return { file, ...Object.fromEntries(read.filter(([, value]) => value !== undefined)) } as GatewayConfig
}
