import type { AddOptions } from '../commands/add.ts'
import type { CheckOptions } from '../commands/check.ts'
import type { ConnectCommandOptions } from '../commands/connect.ts'
import type { DoctorOptions } from '../commands/doctor.ts'
import type { ImportCommandOptions } from '../commands/import.ts'
import type { InitOptions } from '../commands/init.ts'
import type { ServeOptions } from '../commands/serve.ts'
import type { StdioOptions } from '../commands/stdio.ts'
import type { TryOptions } from '../commands/try.ts'
import { type CommandRow, row } from './row.ts'
import { CLIENT_RULES, clientOptions, DEFAULT_CONFIG, ERRORS_AS_JSON } from './shared-options.ts'
import { repeated } from './values.ts'

export const SETUP_COMMANDS: readonly CommandRow[] = [
  row(
    'try',
    'run the quickstart: real MCP servers, demo keys, the console',
    (command) =>
      command.option('--port <port>', 'where to listen; default: PORT, or 8787').option('--json', ERRORS_AS_JSON),
    async (options: TryOptions, deps) => (await import('../commands/try.ts')).tryCommand(options, deps),
  ),
  row(
    'init',
    'write a configuration with two roles, and their keys',
    (command) => command.argument('[folder]', 'where', '.').option('--json', 'for programs'),
    async (options: InitOptions, { io }, folder) =>
      (await import('../commands/init.ts')).initCommand(folder, options, io),
  ),
  {
    name: 'add',
    does: 'add a server to the configuration: a command after "--", or a URL',
    optionHint: 'Put "--" before the command, such as: toolgate add files -- npx -y <package>@<version>',
    define: (command) =>
      command
        .argument('<name>', 'the namespace of its tools, such as files')
        .argument('[target...]', 'its URL, or "--" and its command')
        .option('--config <file>', 'the configuration', DEFAULT_CONFIG)
        .option(
          '--env <name[=value]>',
          'a variable of the command; a name alone is taken from the environment',
          repeated,
        )
        .option('--header <name: value>', 'a header for the URL; ${VAR} is taken from the environment', repeated)
        .option('--shared', 'one process for all users, as it keeps nothing of them')
        .option('--replace', 'replace a server of that name')
        .option('--no-start', 'do not start it to tag its tools')
        .option('--json', 'for programs'),
    run: async (command, deps) => {
      const [name, target] = command.processedArgs as [string, readonly string[]]
      return (await import('../commands/add.ts')).addCommand(name, target, command.optsWithGlobals<AddOptions>(), deps)
    },
  },
  row(
    'import',
    "show how a client's servers would move to the configuration; with --apply, move them",
    (command) =>
      clientOptions(command)
        .option('--apply', 'write both files; what was there is kept')
        .option('--keep', "leave the client's file as it is")
        .option('--no-start', 'do not start the servers to tag their tools'),
    async (options: ImportCommandOptions, deps, client) =>
      (await import('../commands/import.ts')).importCommand(client, options, deps),
    [...CLIENT_RULES, ['--undo', 'not with', '--apply', '--keep', '--no-start'], ['--keep', 'not with', '--as']],
  ),
  row(
    'connect',
    "write the gateway into a client's file",
    (command) =>
      clientOptions(command)
        .option('--app <app>', 'the tools of an app only')
        .option('--http', 'connect over HTTP, with the key in the file, instead of starting "toolgate stdio"')
        .option('--url <url>', 'over HTTP: the gateway; default: where the configuration listens')
        .option('--key <key>', "over HTTP: the agent's key; default: the one that init made")
        .option(
          '--key-env <name>',
          "over HTTP: the variable of the client's environment that has the key, which the file then has not",
        )
        .option('--dry-run', 'only show it'),
    async (options: ConnectCommandOptions, { io }, client) =>
      (await import('../commands/connect.ts')).connectCommand(client, options, io),
    [
      ...CLIENT_RULES,
      ['--undo', 'not with', '--app', '--http', '--url', '--key', '--key-env', '--dry-run'],
      ['--key', 'needs', '--http', '--url'],
      ['--key-env', 'needs', '--http', '--url'],
      ['--key-env', 'not with', '--key', '--as'],
      ['--key', 'not with', '--as'],
    ],
  ),
  row(
    'serve',
    'run the gateway of a configuration',
    (command) =>
      command
        .option('--config <file>', 'the configuration', DEFAULT_CONFIG)
        .option('--port <port>', 'where to listen; default: PORT, or what the configuration says')
        .option('--json', ERRORS_AS_JSON),
    async (options: ServeOptions, deps) => (await import('../commands/serve.ts')).serveCommand(options, deps),
  ),
  row(
    'stdio',
    'speak MCP on stdin and stdout, for clients that start a command',
    (command) =>
      command
        .option('--url <url>', 'a running gateway; default: TOOLGATE_URL, or http://127.0.0.1:8787')
        .option('--key <key>', "an agent's key; default: TOOLGATE_KEY")
        .option('--config <file>', 'run a gateway of this configuration in this process instead')
        .option('--as <user>', 'with --config: the caller; default: the only one')
        .option('--app <app>', 'the tools of an app only')
        .option('--json', ERRORS_AS_JSON),
    async (options: StdioOptions, deps) => (await import('../commands/stdio.ts')).stdioCommand(options, deps),
    [
      ['--config', 'not with', '--url', '--key'],
      ['--as', 'needs', '--config'],
    ],
  ),
  row(
    'doctor',
    'say what is wrong and what mends it: files, port, servers, clocks, policy, clients; exit code 1 for an error',
    (command) =>
      command
        .option(
          '--config <file>',
          'the configuration; default: toolgate.yaml, or where that is not there, a running gateway',
        )
        .option('--url <url>', 'the running gateway; default: TOOLGATE_URL, or http://127.0.0.1:8787')
        .option('--key <key>', 'a console key; default: TOOLGATE_KEY')
        .option('--no-start', 'do not start the servers')
        .option('--json', 'for programs'),
    async (options: DoctorOptions, deps) => (await import('../commands/doctor.ts')).doctorCommand(options, deps),
    [['--config', 'not with', '--url', '--key']],
  ),
  row(
    'check',
    'check a configuration and print its problems; starts nothing',
    (command) =>
      command
        .argument('[file]', 'the configuration', DEFAULT_CONFIG)
        .option('--servers', 'start its servers, too, for warnings about what they offer')
        .option('--no-secrets', 'variables and files that servers need may be absent here, as in CI')
        .option('--json', 'for programs'),
    async (options: CheckOptions, deps, file) =>
      (await import('../commands/check.ts')).checkCommand(file, options, deps),
  ),
]
