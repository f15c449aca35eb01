import { GRANT_COVERS, GRANT_STATUSES } from '@toolgate/core/words'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { unitMs } from '../times.ts'
import { repeated, wholeNumber } from './values.ts'

/** The options that shape a grant. Each needs `--for`. */
export const GRANT_FLAGS = ['--uses', '--covers', '--field', '--up-to', '--any', '--any-run'] as const

export function grantOptions(command: Command): Command {
  return command
    .option('--for <time>', 'grant further calls like this one for so long: 30m, 2h or 1d', lifeOf)
    .option('--uses <n>', 'grant so many further calls; by default as many as the file allows', wholeNumber(1, 1000))
    .addOption(
      new Option(
        '--covers <what>',
        'equal inputs, inputs that differ in the named fields, or any input; default: input, or fields if one is named',
      ).choices(GRANT_COVERS),
    )
    .option('--field <name=value>', 'check that the approved input has this value; it is granted as it is', repeated)
    .option('--up-to <name=number>', 'let a number differ, from 0 up to this one', repeated)
    .option(
      '--any <name>',
      'let a field be anything, or absent; a name such as /order/note is a place within',
      repeated,
    )
    .option('--any-run', 'grant calls in other runs of the same user, too')
}

export function grantFilters(command: Command): Command {
  return command
    .addOption(new Option('--status <status>', 'only these').choices(GRANT_STATUSES).default('live'))
    .option('--all', 'ended ones, too')
    .option('--user <user>', 'only those for this user')
    .option('--tool <id>', 'only those for this tool')
    .option('--tenant <tenant>', 'only those of this tenant')
    .option('--limit <n>', 'how many, at most', wholeNumber(1, 1000))
}

function lifeOf(text: string): number {
  const [, count, unit = ''] = /^([1-9]\d{0,4})([mhd])$/.exec(text) ?? []
  if (count === undefined) throw new InvalidArgumentError('It is a time such as 30m, 2h or 1d.')
  return Number(count) * unitMs(unit)
}
