import type { Command, Option } from 'commander'
import { createApi } from '../client.ts'
import { findTarget } from '../target.ts'
import { CliError, type ExitName } from '../exit.ts'
import { type Io, printLine } from '../io.ts'

export const SHELLS = ['bash', 'zsh', 'fish'] as const
type Shell = (typeof SHELLS)[number]

/**
 * The command that shells call, with the words so far and the incomplete word last. It prints one candidate per line,
 * and nothing on errors.
 */
const ASK = 'toolgate completion --words --'

const SCRIPTS: Readonly<Record<Shell, string>> = {
  bash: `_toolgate() {
  local line="\${COMP_LINE:0:COMP_POINT}" words current
  read -ra words <<<"$line"
  [[ "$line" == *' ' ]] && words+=('')
  current="\${words[-1]}"
  mapfile -t COMPREPLY < <(${ASK} "\${words[@]:1}" 2>/dev/null)
  # A colon is part of a tool's id, and bash breaks words there.
  if [[ "$current" == *:* ]]; then COMPREPLY=("\${COMPREPLY[@]#"\${current%:*}:"}"); fi
}
complete -o default -F _toolgate toolgate`,
  zsh: `#compdef toolgate
_toolgate() {
  local -a found
  found=("\${(@f)$(${ASK} "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if (( \${#found} )) && [[ -n "$found[1]" ]]; then compadd -a found; else _files; fi
}
compdef _toolgate toolgate`,
  fish: `function __toolgate
  set -l words (commandline -opc) (commandline -ct)
  set -l found (${ASK} $words[2..-1] 2>/dev/null)
  if test (count $found) -gt 0
    printf '%s\\n' $found
  else
    __fish_complete_path (commandline -ct)
  end
end
complete -c toolgate -f -a '(__toolgate)'`,
}

export interface CompletionOptions {
  readonly words?: boolean
}

/** `toolgate completion <shell>`: prints the shell's script. */
export function completionScript(shell: string, io: Io): ExitName {
  const found = SHELLS.find((one) => one === shell)
  if (!found) throw new CliError('usage', `No shell is named ${JSON.stringify(shell)}. They are: ${SHELLS.join(', ')}.`)
  printLine(io.stdout, SCRIPTS[found])
  return 'ok'
}

/** Prints the candidates for the last word. It prints no errors, because a shell would show them in the line. */
export async function completeWords(program: Command, words: readonly string[], io: Io): Promise<ExitName> {
  const current = words.at(-1) ?? ''
  const candidates = await candidatesOf(program, words.slice(0, -1), current, io)
  for (const one of candidates.filter((text) => text.startsWith(current))) printLine(io.stdout, one)
  return 'ok'
}

async function candidatesOf(
  program: Command,
  before: readonly string[],
  current: string,
  io: Io,
): Promise<readonly string[]> {
  const { command, rest } = commandOf(program, before)
  const option = findOption(command, rest.at(-1))
  if (option && (option.required || option.optional)) return valuesOf(option.long ?? '', option.argChoices ?? [], io)
  if (current.startsWith('-')) return optionsOf(command).map(({ long }) => long ?? '')
  if (command.commands.length > 0) return rest.length > 0 ? [] : command.commands.map((one) => one.name())
  const [argument] = command.registeredArguments
  if (!argument || rest.some((word) => !word.startsWith('-') && !isValue(command, rest, word))) return []
  return valuesOf(argument.name(), argument.argChoices ?? [], io)
}

/** Returns the command that the words name, and its arguments. */
function commandOf(program: Command, words: readonly string[]): { command: Command; rest: readonly string[] } {
  let command = program
  for (const [i, word] of words.entries()) {
    const next = command.commands.find((one) => one.name() === word)
    if (!next) return { command, rest: words.slice(i) }
    command = next
  }
  return { command, rest: [] }
}

function optionsOf(command: Command): readonly Option[] {
  return [...command.options, ...(command.parent ? optionsOf(command.parent) : [])].filter(({ hidden }) => !hidden)
}

function findOption(command: Command, word: string | undefined): Option | undefined {
  return optionsOf(command).find(({ long, short }) => word !== undefined && (word === long || word === short))
}

function isValue(command: Command, words: readonly string[], word: string): boolean {
  const option = findOption(command, words[words.indexOf(word) - 1])
  return option !== undefined && (option.required || option.optional)
}

/** The candidates from a running gateway, by the name of an argument or of an option. */
const ASKED: ReadonlyMap<string, (api: ReturnType<typeof createApi>) => Promise<readonly string[]>> = new Map([
  ['tool', async (api) => toolIds(api)],
  ['--tool', async (api) => toolIds(api)],
  ['--as', async (api) => (await api.callers()).callers.map(({ user }) => user)],
  ['--user', async (api) => (await api.callers()).callers.map(({ user }) => user)],
  ['server', async (api) => (await api.tools({ caller: '{}' })).servers.map(({ name }) => name)],
  ['id', async (api) => (await api.approvals({ status: 'pending' })).approvals.map(({ id }) => id)],
])

async function toolIds(api: ReturnType<typeof createApi>): Promise<readonly string[]> {
  return (await api.tools({ caller: '{}' })).tools.map(({ id }) => id)
}

async function valuesOf(name: string, choices: readonly string[], io: Io): Promise<readonly string[]> {
  if (choices.length > 0) return choices
  if (name === 'client') return (await import('../clients/table.ts')).CLIENTS.map(({ id }) => id)
  const ask = ASKED.get(name)
  try {
    const found = ask ? await ask(createApi({ ...findTarget({ json: true }, io), timeoutMs: COMPLETE_MS })) : []
    return found.filter((text) => PLAIN.test(text))
  } catch {
    return []
  }
}

/** The candidates that bash may get. Bash inserts a candidate unescaped, so a server's tool name could run commands. */
const PLAIN = /^[\p{L}\p{N}_][\p{L}\p{N}_.:@%+,/-]*$/u

/** The longest wait for a completion, in milliseconds. */
const COMPLETE_MS = 1_000
