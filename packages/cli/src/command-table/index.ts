import { Option } from 'commander'
import { AUDIT_COMMANDS } from './audit.ts'
import { OPERATION_COMMANDS } from './operation.ts'
import { PEOPLE_COMMANDS } from './people.ts'
import { POLICY_COMMANDS } from './policy.ts'
import type { CommandRow } from './row.ts'
import { SETUP_COMMANDS } from './setup.ts'
import { ERRORS_AS_JSON } from './shared-options.ts'
import { VIEW_COMMANDS } from './view.ts'

const COMPLETION: CommandRow = {
  name: 'completion',
  does: 'print the completion script of a shell: bash, zsh or fish',
  define: (command) =>
    command
      .argument('[words...]', 'the shell')
      .addOption(new Option('--words', 'complete the last of the words').hideHelp())
      .option('--json', ERRORS_AS_JSON),
  run: async (command, { io }) => {
    const [words] = command.processedArgs as [readonly string[]]
    const { completeWords, completionScript } = await import('../commands/completion.ts')
    if (command.opts<{ words?: boolean }>().words && command.parent) return completeWords(command.parent, words, io)
    return completionScript(words[0] ?? '', io)
  },
}

const HELP: CommandRow = {
  name: 'help',
  does: 'print the help of a command, or of a topic: exit-codes',
  define: (command) => command.argument('[words...]', 'the command, or the topic').option('--json', ERRORS_AS_JSON),
  run: async (command, { io }) => {
    const [words] = command.processedArgs as [readonly string[]]
    return (await import('../commands/help.ts')).helpCommand(command.parent ?? command, words, io)
  },
}

/** Every command, in the order of the help. */
export const COMMANDS: readonly CommandRow[] = [
  ...SETUP_COMMANDS,
  ...POLICY_COMMANDS,
  ...VIEW_COMMANDS,
  ...PEOPLE_COMMANDS,
  ...OPERATION_COMMANDS,
  ...AUDIT_COMMANDS,
  COMPLETION,
  HELP,
]
