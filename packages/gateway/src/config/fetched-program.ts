/** A program that a launcher fetches at its start, without an exact version. */
interface FetchedProgram {
  /** The package as it is written, such as `pkg@latest`. */
  readonly written: string
  /** The form of an exact version, such as `pkg@1.2.3`. */
  readonly exact: string
}

/** How to read the words after a launcher. */
interface Launcher {
  /** The words between the command and its options: `dlx`, `tool run`. */
  readonly verbs: readonly (readonly string[])[]
  /** Options that name a package. If the command has one, the word after the options names no package. */
  readonly named: readonly string[]
  /** Further options that take a value. */
  readonly valued: readonly string[]
  /** `false`: only options name packages. */
  readonly first?: false
  /** Options that prevent fetching. */
  readonly local?: readonly string[]
  /** Options that name an additional package, besides the one that runs. */
  readonly beside?: readonly string[]
  toProgram(word: string): FetchedProgram | undefined
}

const NPM: Omit<Launcher, 'verbs'> = {
  named: ['-p', '--package'],
  valued: ['-c', '--call', '-w', '--workspace', '--registry', '--cache', '--prefix', '--userconfig', '--loglevel'],
  local: ['--no', '--no-install'],
  toProgram: ofNpm,
}
const PYTHON = ['-p', '--python', '--index', '--index-url', '-i', '--default-index', '--extra-index-url', '--directory']
const UV: Omit<Launcher, 'verbs'> = {
  named: ['--from'],
  beside: ['--with', '-w'],
  valued: [
    ...PYTHON,
    '--project',
    '--env-file',
    '--constraints',
    '-c',
    '--overrides',
    '--cache-dir',
    '--with-editable',
  ],
  toProgram: ofPython,
}
const OCI: Omit<Launcher, 'verbs' | 'valued'> = {
  named: [],
  local: ['--pull=never'],
  toProgram: ofImage,
}
const OCI_VERBS = [['run'], ['container', 'run']]

/** The launchers, by the name of the command. */
const LAUNCHERS: ReadonlyMap<string, readonly Launcher[]> = new Map<string, readonly Launcher[]>([
  ['npx', [{ ...NPM, verbs: [[]] }]],
  ['pnpx', [{ ...NPM, verbs: [[]] }]],
  ['bunx', [{ ...NPM, verbs: [[]] }]],
  ['npm', [{ ...NPM, verbs: [['exec'], ['x']] }]],
  ['pnpm', [{ ...NPM, verbs: [['dlx']] }]],
  ['yarn', [{ ...NPM, verbs: [['dlx']] }]],
  ['bun', [{ ...NPM, verbs: [['x']] }]],
  ['uvx', [{ ...UV, verbs: [[]] }]],
  [
    'uv',
    [
      { ...UV, verbs: [['tool', 'run']] },
      { ...UV, verbs: [['run']], named: [], first: false },
    ],
  ],
  ['pipx', [{ ...UV, verbs: [['run']], named: ['--spec'], valued: [...PYTHON, '--pip-args'] }]],
  ...['docker', 'podman', 'nerdctl'].map((name) => [name, [{ ...OCI, verbs: OCI_VERBS, valued: [] }]] as const),
])
/** Commands that run another one. */
const WRAPPERS: ReadonlySet<string> = new Set(
  'env sh bash dash zsh ash fish cmd powershell pwsh timeout nice nohup sudo doas time stdbuf dotenv dotenvx op'.split(
    ' ',
  ),
)

/** Returns the programs that a command fetches without an exact version. Commands that it cannot read are ignored. */
export function findFetchedPrograms(command: string, args: readonly string[]): readonly FetchedProgram[] {
  return findLaunched(command, args).flatMap(({ launcher, word }) => launcher.toProgram(word) ?? [])
}

/** Returns the packages and images, as they are written, that a command downloads unless they are in a cache. */
export function findDownloads(command: string, args: readonly string[]): readonly string[] {
  const fetched = findLaunched(command, args).filter(
    ({ launcher, word }) => launcher.toProgram === ofImage || !isPath(word),
  )
  return [...new Set(fetched.map(({ word }) => word.trim()))]
}

interface Launched {
  readonly launcher: Launcher
  /** A package or an image, or the path of one. */
  readonly word: string
}

function findLaunched(command: string, args: readonly string[]): readonly Launched[] {
  const name = nameOf(command)
  if (!WRAPPERS.has(name)) return inLaunch(name, args)
  // The script of a shell is a single argument here.
  const words = args.flatMap((arg) => arg.split(/[\s;&|()'"]+/)).filter((word) => word !== '')
  return words.flatMap((word, i) => (isOption(word) ? [] : inLaunch(nameOf(word), words.slice(i + 1))))
}

function inLaunch(name: string, args: readonly string[]): readonly Launched[] {
  for (const launcher of LAUNCHERS.get(name) ?? [])
    for (const verbs of launcher.verbs) {
      const start = afterVerbs(args, verbs)
      if (start !== undefined) return named(launcher, args.slice(start)).map((word) => ({ launcher, word }))
    }
  return []
}

/** Returns the arguments after the verbs. Options of the command may precede each verb. */
function afterVerbs(args: readonly string[], verbs: readonly string[]): number | undefined {
  let at = 0
  for (const verb of verbs) {
    const found = args.indexOf(verb, at)
    if (found === -1 || (at === 0 && found > 0 && !isOption(args[0] ?? '')) || (at > 0 && found !== at))
      return undefined
    at = found + 1
  }
  return at
}

/** Returns the words that name packages or images. */
function named(launcher: Launcher, words: readonly string[]): readonly string[] {
  const { named: naming, beside = [], local = [], first = true } = launcher
  const found: string[] = []
  let namesRun = false
  for (let i = 0; i < words.length; i++) {
    const word = words[i] ?? ''
    const [option, inline] = split(word)
    const value = inline ?? words[i + 1]
    if (local.includes(word) || local.includes(`${option}=${value}`)) return []
    if (!isOption(word) || word === '--') {
      const program = word === '--' ? value : word
      return first && !namesRun && program !== undefined ? [...found, program] : found
    }
    const isNaming = naming.includes(option) || beside.includes(option)
    if (isNaming && value !== undefined) found.push(...(beside.includes(option) ? value.split(',') : [value]))
    namesRun ||= naming.includes(option)
    if (inline === undefined && (isNaming || takesValue(launcher, option))) i++
  }
  return found
}

function split(word: string): readonly [option: string, value?: string] {
  const at = word.indexOf('=')
  return at === -1 || !isOption(word) ? [word] : [word.slice(0, at), word.slice(at + 1)]
}

/** The options of `docker run` that take no value. Most options take one. */
const OCI_FLAGS: ReadonlySet<string> = new Set(
  'detach disable-content-trust help init interactive no-healthcheck oom-kill-disable privileged publish-all quiet read-only replace rm rmi sig-proxy tty'
    .split(' ')
    .map((flag) => `--${flag}`),
)

function takesValue({ valued, toProgram }: Launcher, option: string): boolean {
  if (toProgram !== ofImage) return valued.includes(option)
  if (option.startsWith('--')) return !OCI_FLAGS.has(option)
  // Short options may be combined: `-it`, `-ite NAME=x`. A value may follow its option directly: `-eNAME`.
  const at = option.slice(1).search(/[^dihPqt]/)
  return at !== -1 && at === option.length - 2
}

function ofNpm(word: string): FetchedProgram | undefined {
  if (isPath(word)) return undefined
  const [, name = word, version = ''] = /^((?:@[^/@]+\/)?[^@]+)@(.*)$/.exec(word) ?? []
  if (version.startsWith('npm:')) return ofNpm(version.slice(4))
  if (/^[=v]*\d+\.\d+\.\d+(?:[-+][\w.+-]+)?$/.test(version) || isCommit(word)) return undefined
  return { written: word, exact: exactOf(word, `${name}@1.2.3`) }
}

function ofPython(word: string): FetchedProgram | undefined {
  const spec = word.trim()
  if (isPath(spec)) return undefined
  if (/^[\w.-]+(?:\[[\w.,\s-]*\])?\s*(?:={2,3}|@)\s*v?\d[\w.+!-]*$/.test(spec) || isCommit(spec)) return undefined
  const [name = spec] = /^[\w.-]+(?:\[[\w.,\s-]*\])?/.exec(spec) ?? []
  return { written: spec, exact: exactOf(spec, `${name}==1.2.3`) }
}

function ofImage(word: string): FetchedProgram | undefined {
  if (/@sha256:[0-9a-f]{64}$/i.test(word) || /^(?:sha256:)?[0-9a-f]{64}$/i.test(word)) return undefined
  const [name = word] = word.split('@')
  return { written: word, exact: `${name.replace(/:[^:/]*$/, '')}@sha256:…` }
}

/** Whether a word names a full commit of a repository. Tags and branches are not enough, as they can be moved. */
function isCommit(word: string): boolean {
  return /[#@][0-9a-f]{40}(?:#.*)?$/i.test(word)
}

function exactOf(word: string, version: string): string {
  const isRepository = /^[\w.-]+\/[\w.-]+$|:\/\/|^(?:git|github|gitlab|bitbucket)[:@+]/.test(word.replace(/[#].*$/, ''))
  return isRepository ? 'a package with its exact version, or a repository with its whole commit' : version
}

function isPath(word: string): boolean {
  return /^(?:\.{0,2}[\\/]|~|file:|[A-Za-z]:[\\/]|\.{1,2}$)/.test(word)
}

function isOption(word: string): boolean {
  return word.startsWith('-')
}

function nameOf(command: string): string {
  return (command.split(/[\\/]/).at(-1) ?? '').replace(/\.(?:exe|cmd|ps1|bat)$/i, '').toLowerCase()
}
