import { Option } from 'commander'
import type { AuditOpenOptions } from '../commands/audit-open.ts'
import type { AuditProveOptions, CheckProofOptions } from '../commands/audit-prove.ts'
import type { AuditVerifyOptions } from '../commands/audit-verify.ts'
import type { AuditExportOptions, AuditOptions, AuditQueryOptions, AuditTailOptions } from '../commands/audit.ts'
import { type CommandRow, row } from './row.ts'
import {
  AUDIT_FILE_RULES,
  auditFileOptions,
  DEFAULT_CONFIG,
  ERRORS_AS_JSON,
  FILE_HELP,
  FILE_RULE,
  gatewayOptions,
  RECORD_FLAGS,
  RECORD_RULES,
  recordFilters,
} from './shared-options.ts'
import { MAX_SEQ, timeAgo, wholeNumber } from './values.ts'

export const AUDIT_COMMANDS: readonly CommandRow[] = [
  { name: 'audit', does: 'read the audit', define: (command) => command },
  row(
    'audit tail',
    'print the newest records, and then new ones until it is stopped',
    (command) =>
      recordFilters(command)
        .option('-n, --lines <n>', 'how many to begin with', wholeNumber(0, 1000), 10)
        .option('--no-follow', 'end after these'),
    async (options: AuditTailOptions, { io, signals }) =>
      (await import('../commands/audit.ts')).auditTailCommand(options, io, signals),
    RECORD_RULES,
  ),
  row(
    'audit query',
    'print the records that match, newest first',
    (command) =>
      recordFilters(command)
        .option('--limit <n>', 'at most this many; default 100', wholeNumber(1, 1000))
        .option('--before <seq>', 'only older records', wholeNumber(0, MAX_SEQ))
        .option('--after <seq>', 'only newer records', wholeNumber(0, MAX_SEQ)),
    async (options: AuditQueryOptions, { io }) => (await import('../commands/audit.ts')).auditQueryCommand(options, io),
    [...RECORD_RULES, ['--after', 'before', '--before']],
  ),
  row(
    'audit export',
    'print all records that match, oldest first, as JSON lines',
    (command) =>
      recordFilters(command)
        .addOption(new Option('--from <time>', 'the same as --since').argParser(timeAgo))
        .addOption(new Option('--to <time>', 'the same as --until').argParser(timeAgo))
        .option(
          '--folder <folder>',
          'write the whole audit that replicas share, with its inputs still sealed, to a new folder',
        ),
    async ({ from, to, ...options }: AuditExportOptions & { from?: number; to?: number }, { io }) => {
      const range = { ...(from === undefined ? {} : { since: from }), ...(to === undefined ? {} : { until: to }) }
      return (await import('../commands/audit.ts')).auditExportCommand({ ...options, ...range }, io)
    },
    [
      ...RECORD_RULES,
      ['--from', 'not with', '--since'],
      ['--to', 'not with', '--until'],
      ['--from', 'before', '--to', '--until'],
      ['--since', 'before', '--to'],
      ['--folder', 'not with', '--url', '--key', '--file', '--from', '--to', ...RECORD_FLAGS],
    ],
  ),
  row(
    'audit policy',
    'print the policy that decided, by the policy_hash of a record',
    (command) =>
      gatewayOptions(command)
        .argument('<hash>', 'the hash, or its first 8 digits or more')
        .option('--file <file>', FILE_HELP),
    async (options: AuditOptions, { io }, hash) =>
      (await import('../commands/audit.ts')).auditPolicyCommand(hash, options, io),
    [FILE_RULE],
  ),
  row(
    'audit verify',
    'check an audit against its chain and its checkpoints; the exit code says what is wrong',
    (command) =>
      auditFileOptions(command)
        .option('--signed <seq>', 'fail if no checkpoint signs this record', wholeNumber(1, MAX_SEQ))
        .option('--witness <file>', 'the checkpoints that a witness has kept, for an audit that replicas share')
        .option('--json', 'for programs'),
    async (options: AuditVerifyOptions, { io }) =>
      (await import('../commands/audit-verify.ts')).auditVerifyCommand(options, io),
    [
      ...AUDIT_FILE_RULES,
      ['--offline', 'not with', '--signed'],
      ['--witness', 'not with', '--file', '--checkpoints', '--signed'],
    ],
  ),
  row(
    'audit open',
    'print the sealed input of a call, with the key of the configuration; the audit says that it was opened',
    (command) =>
      command
        .argument('[call]', 'its tool_call_id, or the seq of a record')
        .option('--call <id>', 'the call by its tool_call_id, also where that is a number')
        .option('--record <seq>', 'the record by its seq', wholeNumber(1, MAX_SEQ))
        .option('--config <file>', 'the configuration', DEFAULT_CONFIG)
        .option('--file <file>', 'a copy of the audit (SQLite or JSON lines); the key may be in TOOLGATE_INPUT_KEY')
        .option('--json', 'for programs: with the record'),
    async (options: AuditOpenOptions, { io }, call) =>
      (await import('../commands/audit-open.ts')).auditOpenCommand(call, options, io),
  ),
  row(
    'audit rotate',
    'a running gateway closes its audit file of JSON lines and begins another; prints the name of the closed one',
    gatewayOptions,
    async (options: AuditOptions, { io }) => (await import('../commands/audit.ts')).auditRotateCommand(options, io),
  ),
  row(
    'audit prove',
    'print the proofs that records are in the audit, as tlog-proof',
    (command) =>
      auditFileOptions(command)
        .option('--call <id>', 'the records of a call: its tool_call_id')
        .option('--record <seq>', 'one record, by its seq', wholeNumber(1, MAX_SEQ))
        .option('--from <file>', 'that the log goes on from the checkpoint in this file')
        .option('--out <folder>', 'a file for each proof, in this folder')
        .option('--json', ERRORS_AS_JSON),
    async (options: AuditProveOptions, { io }) =>
      (await import('../commands/audit-prove.ts')).auditProveCommand(options, io),
    [
      ...AUDIT_FILE_RULES,
      ['--offline', 'not with', '--public-key'],
      ['needs', '--call', '--record', '--from'],
      ['--call', 'not with', '--record', '--from'],
      ['--record', 'not with', '--from'],
    ],
  ),
  row(
    'audit check-proof',
    'check proofs that "audit prove" printed; needs no audit',
    (command) =>
      command
        .argument('<file>', 'the proofs')
        .option('--public-key <file>', 'the public keys that are trusted, name+id+key, one a line')
        .option('--from <file>', 'the earlier checkpoint, for a proof that a log goes on')
        .option('--json', ERRORS_AS_JSON),
    async (options: CheckProofOptions, { io }, file) =>
      (await import('../commands/audit-prove.ts')).auditCheckProofCommand(file, options, io),
    [['needs', '--public-key']],
  ),
]
