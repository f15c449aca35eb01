import { ITEM_KINDS } from '@toolgate/core/words'
import { Option } from 'commander'
import type { CallOptions } from '../commands/call.ts'
import type { LabelsOptions } from '../commands/labels.ts'
import type { LogsOptions } from '../commands/logs.ts'
import type { NeedsOptions, ToolsOptions } from '../commands/tools.ts'
import type { WhyOptions } from '../commands/why.ts'
import { type CommandRow, row } from './row.ts'
import { gatewayOptions, ITEM_HELP, TOOL_HELP, WHOSE_RULES, whoseOptions } from './shared-options.ts'
import { wholeNumber } from './values.ts'

export const VIEW_COMMANDS: readonly CommandRow[] = [
  row(
    'tools',
    'list the tools that a caller sees; without a caller, how many each one sees',
    (command) =>
      whoseOptions(gatewayOptions(command))
        .option('--all', 'hidden ones too, with the reason')
        .addOption(new Option('--kind <kind>', 'what to list; default: tool').choices(ITEM_KINDS)),
    async (options: ToolsOptions, { io }) => (await import('../commands/tools.ts')).toolsCommand(options, io),
    [...WHOSE_RULES, ['--all', 'needs', '--as', '--caller'], ['--kind', 'needs', '--as', '--caller']],
  ),
  row(
    'labels',
    'propose labels, tags and addressees of tools, for rules about what a run has read; print them as YAML',
    (command) =>
      gatewayOptions(command)
        .option(
          '--file <file>',
          'read tools from this file (JSON: the answer of tools/list) instead of asking a gateway',
        )
        .option('--server <name>', 'with --file: the name of their server in the configuration', 'server')
        .option('--as <user>', 'whose tools; default: those of the first caller')
        .option('--all', 'labelled tools too')
        .option('--yaml', 'only the YAML'),
    async (options: LabelsOptions, { io }) => (await import('../commands/labels.ts')).labelsCommand(options, io),
    [
      ['--server', 'needs', '--file'],
      ['--file', 'not with', '--as', '--url', '--key', '--config'],
      ['--yaml', 'not with', '--json'],
    ],
  ),
  row(
    'why',
    'explain the decision about one tool, resource or prompt, or about a call of it; exit code 1 if it is not visible, or the call refused',
    (command) =>
      whoseOptions(gatewayOptions(command).argument('<tool>', ITEM_HELP))
        .option('--input <json>', 'of a call with this input, which is not made: JSON, @file, or - for stdin')
        .option('--history <yaml>', 'of a call after this has happened: a file, YAML or JSON, or - for stdin'),
    async (options: WhyOptions, { io }, tool) => (await import('../commands/why.ts')).whyCommand(tool, options, io),
    [['needs', '--as', '--caller'], ...WHOSE_RULES],
  ),
  row(
    'call',
    'call a tool as an agent does; exit code 1 if it is refused or fails',
    (command) =>
      command
        .argument('<tool>', `${TOOL_HELP}, or its name for clients`)
        .option('--input <json>', 'its input: JSON, @file, or - for stdin; default: {}')
        .option('--as <user>', 'a user of the configuration whose key is in it or beside it')
        .option('--key <key>', "an agent's key; default: TOOLGATE_KEY")
        .option('--url <url>', 'the gateway; default: TOOLGATE_URL, or where the configuration listens')
        .option('--config <file>', 'the configuration; default: toolgate.yaml')
        .option('--app <app>', 'within an app')
        .option('--json', 'for programs: the result as MCP has it'),
    async (options: CallOptions, deps, tool) => (await import('../commands/call.ts')).callCommand(tool, options, deps),
    [['--key', 'not with', '--as']],
  ),
  row(
    'logs',
    'print the last lines of a server: its stderr, and what the gateway logged of it',
    (command) =>
      gatewayOptions(command)
        .argument('<server>', 'its name in the configuration')
        .option('-n, --lines <n>', 'how many to begin with', wholeNumber(1, 500), 50)
        .option('-f, --follow', 'go on with new ones until it is stopped'),
    async (options: LogsOptions, { io, signals }, server) =>
      (await import('../commands/logs.ts')).logsCommand(server, options, io, signals),
  ),
  row(
    'needs',
    "list the dependencies of an app's tools; exit code 1 if one is not available",
    (command) => gatewayOptions(command).argument('[app]', 'an app of the configuration; default: all groups'),
    async (options: NeedsOptions, { io }, app: string | undefined) =>
      (await import('../commands/tools.ts')).needsCommand(app, options, io),
  ),
]
