import type { CompareOptions } from '../commands/compare.ts'
import type { PolicyTestsOptions } from '../commands/policy-tests.ts'
import type { RestorePolicyOptions, RevisionsOptions } from '../commands/policy-revisions.ts'
import type { SnapshotOptions } from '../commands/snapshot.ts'
import type { SuggestCommandOptions } from '../commands/suggest.ts'
import type { Since, WhatIfCommandOptions } from '../commands/what-if.ts'
import { CliError } from '../exit.ts'
import { type CommandRow, row } from './row.ts'
import { DEFAULT_CONFIG, ERRORS_AS_JSON, FILE_HELP, gatewayOptions } from './shared-options.ts'
import { sinceOf, timeAgo } from './values.ts'

export const POLICY_COMMANDS: readonly CommandRow[] = [
  {
    name: 'test',
    does: 'test the policy with files of tests, *.test.yaml; starts nothing; exit code 1 if one fails',
    rules: [
      ['--init', 'not with', '--live', '--audit', '--tap', '--junit'],
      ['--since', 'needs', '--audit'],
      ['--url', 'needs', '--audit'],
      ['--key', 'needs', '--audit'],
      ['--tap', 'not with', '--junit', '--json'],
      ['--junit', 'not with', '--json'],
    ],
    define: (command) =>
      command
        .argument('[files...]', 'files, or folders of them; default: those beside the configuration')
        .option('--config <file>', 'the configuration of files that name none; default: toolgate.yaml beside them')
        .option(
          '--init',
          'write a first file of tests beside the configuration, policy.test.yaml, with what the policy answers now',
        )
        .option('--live', 'start the servers, and test on what they offer now')
        .option('--audit', 'ask the running gateway, too, which clauses real calls have reached')
        .option('--since <time>', 'with --audit: calls from then on; default: the last 30 days', timeAgo)
        .option('--url <url>', 'with --audit: the gateway; default: TOOLGATE_URL, or where the configuration listens')
        .option('--key <key>', 'with --audit: a console key; default: TOOLGATE_KEY')
        .option('--tap', 'for programs: the Test Anything Protocol')
        .option('--junit', 'for programs: the XML of JUnit')
        .option('--json', 'for programs'),
    run: async (command, deps) => {
      const [files] = command.processedArgs as [readonly string[]]
      const options = command.optsWithGlobals<Omit<PolicyTestsOptions, 'since'> & { since?: number; init?: boolean }>()
      if (options.init) {
        if (files.length > 0)
          throw new CliError('usage', '--init writes policy.test.yaml beside the configuration: it takes no files.')
        const { firstTestCommand } = await import('../commands/first-test.ts')
        return firstTestCommand({ config: DEFAULT_CONFIG, ...options }, deps)
      }
      const { policyTestsCommand } = await import('../commands/policy-tests.ts')
      return policyTestsCommand(files, { ...options, since: options.since ?? timeAgo('30d') }, deps)
    },
  },
  {
    name: 'compare',
    does: 'say whether a configuration grants no more than another: yes, no with a counterexample, or unknown; exit code 1 unless yes',
    define: (command) =>
      command
        .argument('<before>', 'the configuration that is compared with')
        .argument('[after]', 'the other one', DEFAULT_CONFIG)
        .option('--catalog <file>', 'the tools: what "toolgate snapshot" has written', 'catalog.json')
        .option('--json', 'for programs'),
    run: async (command, { io }) => {
      const files = command.processedArgs as [string, string]
      return (await import('../commands/compare.ts')).compareCommand(
        files,
        command.optsWithGlobals<CompareOptions>(),
        io,
      )
    },
  },
  row(
    'snapshot',
    'start the servers, and write what they offer as data, for tests',
    (command) =>
      command
        .option('--config <file>', 'the configuration', DEFAULT_CONFIG)
        .option('-o, --output <file>', 'write it to this file; default: print it')
        .option('--json', ERRORS_AS_JSON),
    async (options: SnapshotOptions, deps) => (await import('../commands/snapshot.ts')).snapshotCommand(options, deps),
  ),
  row(
    'suggest',
    'print the least that recorded calls show to be needed, for each role, as a policy to review, and which of these calls it would refuse',
    (command) =>
      command
        .option('--config <file>', 'the configuration in force', DEFAULT_CONFIG)
        .option(
          '--since <time>',
          'calls from then on: 2026-11-21T09:00:00Z, or 30d; default: the last seven days',
          timeAgo,
        )
        .option('--role <role>', 'only callers with this role')
        .option('--catalog <file>', 'a snapshot; default: start the servers, and take what they offer')
        .option('--file <file>', FILE_HELP)
        .option('--url <url>', 'the gateway; default: TOOLGATE_URL, or where the configuration listens')
        .option('--key <key>', 'a console key; default: TOOLGATE_KEY')
        .option('--json', 'for programs'),
    async (options: Omit<SuggestCommandOptions, 'since'> & { since?: number }, deps) => {
      const { suggestCommand } = await import('../commands/suggest.ts')
      return suggestCommand({ ...options, since: options.since ?? timeAgo('7d') }, deps)
    },
    [['--file', 'not with', '--url', '--key']],
  ),
  row(
    'what-if',
    'say what the rules of another configuration would mean: who gains and loses tools, which recorded calls would have ended otherwise',
    (command) =>
      command
        .option('--policy <file>', 'the other configuration')
        .option('--config <file>', 'the configuration in force', DEFAULT_CONFIG)
        .option('--since <time>', 'calls from then on: 2026-11-21T09:00:00Z, or 7d for the last seven days', sinceOf)
        .option('--catalog <file>', 'a snapshot; default: start the servers, and take what they offer')
        .option('--file <file>', FILE_HELP)
        .option('--resume <file>', 'keep what was counted in this file, and go on from it after a stop')
        .option('--url <url>', 'the gateway; default: TOOLGATE_URL, or where the configuration listens')
        .option('--key <key>', 'a console key; default: TOOLGATE_KEY')
        .option('--json', 'for programs'),
    async (options: Omit<WhatIfCommandOptions, 'since'> & { since?: Since }, deps) => {
      const { whatIfCommand } = await import('../commands/what-if.ts')
      return whatIfCommand({ ...options, since: options.since ?? sinceOf('7d') }, deps)
    },
    [
      ['needs', '--policy'],
      ['--file', 'not with', '--url', '--key'],
    ],
  ),
  { name: 'policy', does: 'list the policies that were in force, and go back to one', define: gatewayOptions },
  {
    ...row(
      'policy revisions',
      'list the policies that were in force: since when, by whom and how',
      gatewayOptions,
      async (options: RevisionsOptions, { io }) =>
        (await import('../commands/policy-revisions.ts')).revisionsCommand(options, io),
    ),
    isDefault: true,
  },
  row(
    'policy show',
    'print the text of a policy that was in force',
    (command) => gatewayOptions(command).argument('<revision>', 'as "toolgate policy" shows it'),
    async (options: RevisionsOptions, { io }, revision) =>
      (await import('../commands/policy-revisions.ts')).showRevisionCommand(revision, options, io),
  ),
  row(
    'policy restore',
    'go back to an earlier policy; it applies until the policy of the file changes',
    (command) =>
      gatewayOptions(command)
        .argument('<revision>', 'as "toolgate policy" shows it')
        .option('--dry-run', 'only say what would change, and who would gain and lose which tools')
        .option('--preview <id>', 'apply exactly what a dry run has shown, or nothing'),
    async (options: RestorePolicyOptions, { io }, revision) =>
      (await import('../commands/policy-revisions.ts')).restoreCommand(revision, options, io),
  ),
  row(
    'policy release',
    'apply the policy of the file again, in place of a restored one',
    gatewayOptions,
    async (options: RevisionsOptions, { io }) =>
      (await import('../commands/policy-revisions.ts')).releasePolicyCommand(options, io),
  ),
]
