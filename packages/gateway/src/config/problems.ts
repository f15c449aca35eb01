import type { ConfigPlace } from '../model/config-place.ts'
import { ToolgateError } from '@toolgate/core'

/** One problem in a configuration file. */
export interface ConfigProblem extends ConfigPlace {
  /** The path in the configuration, such as `policy[0].deny[1].when`; empty for the whole file. */
  readonly path: string
  /** States what was found and what was expected. */
  readonly message: string
}

/** A likely mistake in a valid configuration. */
export interface ConfigWarning extends ConfigProblem {
  readonly code:
    | 'selector_unmatched'
    | 'name_clash'
    | 'uri_contested'
    | 'not_offered'
    | 'item_rejected'
    | 'approver_missing'
    | 'approver_idle'
    | 'approver_role_missing'
    | 'ask_unexplained'
    | 'instances_share'
    | 'public_url_missing'
    | 'person_split'
    | 'notify_unlinked'
    | 'notify_insecure'
    | 'notify_unmatched'
    | 'program_unpinned'
    | 'clause_covered'
    | 'limit_covered'
    | 'clause_never'
    | 'compare_unusable'
    | 'variable_unset'
}

/** The error for an invalid configuration file, with all its problems in the file's order. */
export class ConfigFileError extends ToolgateError {
  override readonly name = 'ConfigFileError'
  readonly problems: readonly ConfigProblem[]

  constructor(problems: readonly ConfigProblem[], options: { cause?: unknown } = {}) {
    super('config_invalid', problems.map(formatProblem).join('\n'), options)
    this.problems = problems
  }
}

/** Returns `file:line:column: path: message`, which editors and terminals turn into a link. */
export function formatProblem({ file, line, column, path, message }: ConfigProblem): string {
  return `${file}:${line}:${column}: ${path ? `${path}: ` : ''}${message}`
}

/** The keys and indexes from the root of the file to one of its values. */
export type ConfigPath = readonly (string | number)[]

const PLAIN_KEY = /^[A-Za-z_$][\w$-]*$/

/** Returns a path as text: `servers.files.args[0]`, `servers.files.tools["read_*"]`. */
export function formatPath(path: ConfigPath): string {
  let text = ''
  for (const part of path) {
    if (typeof part === 'number') text += `[${part}]`
    else if (!PLAIN_KEY.test(part)) text += `[${JSON.stringify(part)}]`
    else text += text === '' ? part : `.${part}`
  }
  return text
}
