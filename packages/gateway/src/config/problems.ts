import { ToolgateError } from '@toolgate/core'

/** One thing that is wrong in a configuration file. Lines and columns start at 1. */
export interface ConfigProblem {
  readonly file: string
  readonly line: number
  readonly column: number
  /** Where in the configuration, such as `policy[0].deny[1].when`; empty for the file as a whole. */
  readonly path: string
  /** What was found and what was expected. */
  readonly message: string
}

/** Something in a configuration that can be used and is probably not meant. */
export interface ConfigWarning extends ConfigProblem {
  readonly code: 'selector_unmatched' | 'approver_missing' | 'approver_idle' | 'server_not_shared'
}

/** A configuration file that cannot be used, with every problem that was found in it, in the file's order. */
export class ConfigFileError extends ToolgateError {
  override readonly name = 'ConfigFileError'
  readonly problems: readonly ConfigProblem[]

  constructor(problems: readonly ConfigProblem[], options: { cause?: unknown } = {}) {
    super('config_invalid', problems.map(formatProblem).join('\n'), options)
    this.problems = problems
  }
}

/** Returns `file:line:column: path: message`, as editors and terminals link it. */
export function formatProblem({ file, line, column, path, message }: ConfigProblem): string {
  return `${file}:${line}:${column}: ${path ? `${path}: ` : ''}${message}`
}

/** The keys and indexes from the root of the file to one of its values. */
export type ConfigPath = readonly (string | number)[]

const PLAIN_KEY = /^[A-Za-z_$][\w$-]*$/

/** Returns a path as people write it: `servers.files.args[0]`, `servers.files.tools["read_*"]`. */
export function formatPath(path: ConfigPath): string {
  let text = ''
  for (const part of path) {
    if (typeof part === 'number') text += `[${part}]`
    else if (!PLAIN_KEY.test(part)) text += `[${JSON.stringify(part)}]`
    else text += text === '' ? part : `.${part}`
  }
  return text
}
