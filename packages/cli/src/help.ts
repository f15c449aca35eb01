import type { Command } from 'commander'
import { EXAMPLES } from './help-examples.ts'
import { EXITS } from './exit.ts'

/** The commands in groups, each with a line that fits beside its name. */
const GROUPS: readonly (readonly [group: string, commands: Readonly<Record<string, string>>])[] = [
  [
    'Start',
    {
      try: 'run the quickstart: real servers, demo keys, the console',
      init: 'write a configuration with two roles, and their keys',
      add: 'add a server: a command after "--", or a URL',
      import: "move a client's servers to the configuration",
      connect: "write the gateway into a client's file",
      doctor: 'say what is wrong and what mends it',
    },
  ],
  [
    'Run',
    {
      serve: 'run the gateway of a configuration',
      stdio: 'speak MCP on stdin and stdout, for clients',
      reload: 'make a running gateway read its file again',
      replicas: 'list the gateways that share their stores',
      backup: 'copy the files of a gateway',
      restore: 'put a backup in their place',
    },
  ],
  [
    'Look',
    {
      tools: 'list the tools that a caller sees',
      why: 'explain a decision about a tool or a call',
      call: 'call a tool as an agent does',
      audit: 'read, verify and export the records',
      logs: 'print the last lines of a server',
      runs: 'list and end the runs of hosts',
      limits: 'list what is left of budgets',
      needs: "list the dependencies of an app's tools",
    },
  ],
  [
    'Decide',
    {
      approvals: 'list the calls that wait for a person, and decide',
      halt: 'stop a user, tool, tenant or everything, now',
      release: 'end a halt',
      halts: 'list the halts',
      pins: 'review definitions that have changed',
      keys: 'list, make and revoke keys',
    },
  ],
  [
    'Change',
    {
      check: 'check a configuration, and start nothing',
      test: 'test the policy with files of tests',
      'what-if': 'show who would gain and lose what',
      compare: 'say whether a configuration grants no more',
      suggest: 'print the least policy that recorded calls need',
      labels: 'propose labels of tools',
      snapshot: 'write what the servers offer, for tests',
    },
  ],
]

const NAME_WIDTH = 11
const GROUP_WIDTH = 8

/** Returns the help of the program: its commands in groups. A command without a group comes last. */
export function helpOf(program: Command): string {
  const grouped = new Set(GROUPS.flatMap(([, commands]) => Object.keys(commands)))
  const others = program.commands.filter((command) => !grouped.has(command.name()))
  const more = Object.fromEntries(others.map((command) => [command.name(), command.summary() || command.description()]))
  const lines = [...GROUPS, ['More', more] as const].flatMap(([group, commands]) =>
    Object.entries(commands).map(([name, does], i) => {
      const head = (i === 0 ? group : '').padEnd(GROUP_WIDTH)
      return `${head}${name.padEnd(NAME_WIDTH)}${does}`
    }),
  )
  return `Usage: toolgate <command> [options]

${program.description()}

${lines.join('\n')}

"toolgate <command> --help" has options and examples. "toolgate help exit-codes"
lists the exit codes. --version prints the version.
`
}

/** Returns the help texts that belong to no command, by name. */
export const TOPICS: ReadonlyMap<string, () => string> = new Map([['exit-codes', exitCodes]])

const WIDTH = 80
const CODE_WIDTH = 5

function exitCodes(): string {
  const rows = Object.values(EXITS).map(({ code, means }) => {
    const [first = '', ...others] = wrap(means, WIDTH - CODE_WIDTH)
    return [`${String(code).padEnd(CODE_WIDTH)}${first}`, ...others.map((line) => ' '.repeat(CODE_WIDTH) + line)]
  })
  return `Exit codes:\n${rows.flat().join('\n')}\n`
}

function wrap(text: string, width: number): readonly string[] {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + 1 + word.length <= width) lines[lines.length - 1] = `${last} ${word}`
    else lines.push(word)
  }
  return lines
}

/** Returns the examples of a command as a part of its help, or an empty text. */
export function examplesOf(name: string): string {
  const examples = EXAMPLES.get(name)
  return examples === undefined ? '' : `\nExamples:\n${examples.map((line) => `  toolgate ${line}`).join('\n')}`
}
