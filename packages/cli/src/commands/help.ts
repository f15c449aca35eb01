import type { Command } from 'commander'
import { nearestOf } from '@toolgate/values'
import { CliError, type ExitName } from '../exit.ts'
import { TOPICS } from '../help.ts'
import { type Io, printable } from '../io.ts'

/** `toolgate help [words...]`: prints a topic, or the help of a command. @throws {CliError} `usage`, with the nearest */
export function helpCommand(program: Command, words: readonly string[], io: Io): ExitName {
  const topic = TOPICS.get(words.join(' '))
  if (topic) io.stdout.write(topic())
  else findCommand(program, words).outputHelp()
  return 'ok'
}

function findCommand(program: Command, words: readonly string[]): Command {
  let command = program
  for (const word of words) {
    const names = command.commands.map((one) => one.name())
    const next = command.commands.find((one) => one.name() === word)
    if (next === undefined) {
      const near = nearestOf(word, command === program ? [...names, ...TOPICS.keys()] : names)
      throw new CliError('usage', `There is no help about "${printable(word)}".`, {
        hint: near === undefined ? '"toolgate --help" lists the commands.' : `Did you mean ${near}?`,
      })
    }
    command = next
  }
  return command
}
