import { LEFT_OUT, type LeftOut, type SuggestedRole, type Suggestion } from '@toolgate/change'
import { Document, type Node, type YAMLMap, type YAMLSeq } from 'yaml'
import { printable } from '../io.ts'
import { missingText } from '../commands/missing-records.ts'
import { nextCommand, type RepeatedOptions } from '../next-command.ts'
import { count } from '../render.ts'

/** With fewer calls, a suggestion says little about a role's needs. */
const FEW = 20

/** Returns a suggested policy as YAML for the configuration. Comments contain what a person must know. */
export function suggestionYaml(suggestion: Suggestion, given: RepeatedOptions = {}): string {
  const { policy, roles, learned, leftOut } = suggestion
  const document = new Document()
  document.contents = document.createNode({ policy: [escaped(policy)] }) as never
  const lines = [
    ...whyFew(suggestion, given),
    ` Suggested from ${count(learned, 'call')}. It allows nothing else. Review each line.`,
    ...roles.flatMap(describeRole),
    ...(leftOut.length > 0 ? [' Not learned:'] : []),
    ...leftOut.map(({ why, calls }) => `   ${count(calls, 'call')}: ${LEFT_OUT[why]}`),
  ]
  document.commentBefore = lines.map(printable).join('\n')
  const [first] = (document.get('policy') as YAMLSeq).items as readonly YAMLMap[]
  for (const key of ['allow', 'ask'])
    for (const clause of (first?.get(key) as YAMLSeq | undefined)?.items ?? [])
      setFlow((clause as YAMLMap).get('match', true))
  return document.toString({ lineWidth: 0 })
}

/** Returns why it learned from few calls, and what a person can do. Empty if it learned from enough. */
function whyFew({ learned, leftOut }: Suggestion, given: RepeatedOptions): readonly string[] {
  if (learned >= FEW) return []
  const all = leftOut.reduce((sum, { calls }) => sum + calls, learned)
  const [most] = all - learned > learned ? leftOut.toSorted((a, b) => b.calls - a.calls) : []
  return [
    ...(all < FEW
      ? [` Only ${count(all, 'call')} in the audit: let agents work for some days, then run the command again.`]
      : []),
    ...(most
      ? [
          ` Learned from ${learned} of ${count(all, 'call')}. Most were left out because ${LEFT_OUT[most.why]}.`,
          ...adviceOn(most.why, given).map((line) => ` ${line}`),
        ]
      : []),
    '',
  ]
}

/** Returns what a person can do about calls that were left out. */
function adviceOn(why: LeftOut, given: RepeatedOptions): readonly string[] {
  switch (why) {
    case 'untrusted':
      return [
        'The output of each tool counts as untrusted until you say otherwise, and nothing is learned from what a run does after it.',
        'Name the tools whose output no outsider can write, such as labels: { trusted: ["clock:now", "contacts:*"] }, and reload.',
        `"${nextCommand('labels', given)}" proposes them. Calls from then on are learned.`,
      ]
    case 'unknown_run':
      return ['Read an audit that begins earlier, or wait until newer runs are in it.']
    case 'unknown_caller':
      return ['Add these callers to the configuration, with their roles.']
    case 'unknown_tool':
      return [
        `The catalog lacks the tools that were called. Record it again: ${nextCommand('snapshot -o catalog.json', { config: given.config })}`,
      ]
    case 'refused':
      return [
        'The policy in force refuses these calls, so nothing is learned from them. Allow them first, or in a shadow policy.',
      ]
    case 'waiting':
      return [`Approve or refuse what waits: ${nextCommand('approvals', given)}`]
    default:
      return []
  }
}

/** Returns warnings about parts with too few records. */
export function suggestionWarnings({ roles, learned, leftOut, missing }: Suggestion): readonly string[] {
  const gap = missing > 0 ? [missingText(missing)] : []
  const isTainted = leftOut.some(({ why }) => why === 'untrusted')
  if (learned === 0)
    return [
      ...gap,
      `no call could be learned from, so the suggestion allows nothing${isTainted ? '; name the tools whose output you trust: labels.trusted' : ''}`,
    ]
  const few = roles.filter(({ calls }) => calls < FEW)
  return [...gap, ...few.map((role) => `only ${count(role.calls, 'call')} of ${nameOf(role)}: too few to rely on`)]
}

function describeRole(role: SuggestedRole): readonly string[] {
  const { calls, tools } = role
  const unknown = tools.filter(({ unknownInputs }) => unknownInputs > 0)
  return [
    `   ${nameOf(role)}: ${count(calls, 'call')} of ${count(tools.length, 'tool')}${calls < FEW ? ', too few to rely on' : ''}`,
    ...unknown.map(
      ({ tool, unknownInputs, input }) =>
        `     ${tool}: the input of ${count(unknownInputs, 'call')} was not kept as a whole${input === undefined ? '' : ', and may be refused'}`,
    ),
  ]
}

function nameOf({ roles, user, tenant }: SuggestedRole): string {
  const who = roles.length > 0 ? roles.join(' and ') : (user ?? 'callers without a name')
  return tenant === undefined ? who : `${who} of ${tenant}`
}

/** Escapes `${`, which begins a variable in a configuration. */
function escaped(value: unknown): unknown {
  if (typeof value === 'string') return value.replaceAll('${', () => '$${')
  if (Array.isArray(value)) return value.map(escaped)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, escaped(one)]))
}

function setFlow(node: unknown): void {
  if (typeof node === 'object' && node !== null && 'items' in node) (node as Node & { flow?: boolean }).flow = true
}
