import { readFileSync } from 'node:fs'
import { isObject } from '@toolgate/values/json'
import { messageOf } from '@toolgate/values'
import { type Api, createApi } from '../client.ts'
import { findTarget, type TargetOptions } from '../target.ts'
import { CliError, type ExitName } from '../exit.ts'
import { type Io, painter, printable, printJson, printLine } from '../io.ts'
import { parseJson } from '../json.ts'
import { type LabelProposal, type ProposedTool, proposeLabels } from '../labels/propose.ts'
import { proposeCompare } from '../labels/propose-compare.ts'
import { toYaml } from '../labels/to-yaml.ts'
import { count } from '../render.ts'
import { renderTable } from '../table.ts'

export interface LabelsOptions extends TargetOptions {
  readonly file?: string
  readonly server: string
  readonly as?: string
  readonly all?: boolean
  readonly yaml?: boolean
  readonly json?: boolean
}

/** `toolgate labels`: proposes labels for unlabelled tools, which rules about runs need. Changes nothing. */
export async function labelsCommand(options: LabelsOptions, io: Io): Promise<ExitName> {
  const tools =
    options.file === undefined
      ? await toolsOfGateway(createApi(findTarget(options, io)), options.as)
      : toolsOfFile(options.file, options.server)
  const ofServers = Map.groupBy(tools, ({ server }) => server)
  const proposals = tools.map((tool): LabelProposal => {
    const compare = proposeCompare(tool, ofServers.get(tool.server) ?? [])
    return { ...proposeLabels(tool), ...(compare && { compare }) }
  })
  const shown = options.all ? proposals : proposals.filter(needsLabels)
  if (options.json) printJson(io.stdout, { proposals: shown })
  else if (options.yaml) io.stdout.write(toYaml(shown))
  else print(proposals, shown, io)
  return 'ok'
}

/**
 * Whether a tool needs a label. A tool that only reads needs none: its output is untrusted unless a person labels it.
 */
function needsLabels({ isLabelled, effects, mayBeTrusted }: LabelProposal): boolean {
  return !isLabelled && (effects === undefined || mayBeTrusted || effects.some((effect) => effect !== 'reads'))
}

function print(proposals: readonly LabelProposal[], shown: readonly LabelProposal[], io: Io): void {
  const paint = painter(io.stdout, io.env)
  const unlabelled = proposals.filter(needsLabels).length
  const summary = unlabelled === 0 ? 'all labelled' : `${unlabelled} still unlabelled`
  printLine(io.stdout, paint('bold', `${count(proposals.length, 'tool')}, ${summary}`))
  if (shown.length === 0) return
  const rows = shown.map(({ server, name, effects, addressees, mayBeTrusted, why }) => [
    printable(`${server}:${name}`),
    effects === undefined ? paint('yellow', 'unclear') : effects.join(', '),
    addressees.map(printable).join(', '),
    mayBeTrusted ? 'maybe' : '',
    printable(why),
  ])
  printLine(io.stdout, `\n${renderTable(['TOOL', 'DOES', 'ADDRESSEES', 'TRUSTED', 'FROM'], rows, io.stdout)}\n`)
  io.stdout.write(toYaml(shown))
  printLine(io.stdout, `\n${paint('dim', 'Review each line: a server chooses its names and descriptions.')}`)
}

const AT_ONCE = 8

async function toolsOfGateway(api: Api, as: string | undefined): Promise<readonly ProposedTool[]> {
  const user = as ?? (await api.callers()).callers[0]?.user
  if (user === undefined) throw new CliError('usage', 'Name the caller whose tools to label, with --as <user>.')
  const { tools: rows } = await api.tools({ as: user })
  const tools: ProposedTool[] = []
  for (let i = 0; i < rows.length; i += AT_ONCE) {
    const bodies = await Promise.all(rows.slice(i, i + AT_ONCE).map(({ id }) => api.tool(id, { as: user })))
    for (const { tool, inputSchema, annotations, addressees } of bodies) {
      const colon = tool.id.indexOf(':')
      tools.push({
        server: tool.id.slice(0, Math.max(colon, 0)),
        name: tool.id.slice(colon + 1),
        description: tool.description,
        inputSchema,
        annotations,
        tags: tool.tags,
        ...(addressees && { addressees }),
      })
    }
  }
  return tools
}

/** @throws {CliError} `usage` for a file that is not a list of tools */
function toolsOfFile(file: string, server: string): readonly ProposedTool[] {
  const list = listIn(readJson(file))
  if (!list) throw new CliError('usage', `${file} has no list of tools, such as the answer of tools/list.`)
  return list.map((tool, i) => {
    if (!isObject(tool) || typeof tool['name'] !== 'string')
      throw new CliError('usage', `${file}: the tool at ${i} has no name.`)
    const { name, description, inputSchema, annotations } = tool
    return { server, name, description: typeof description === 'string' ? description : '', inputSchema, annotations }
  })
}

function readJson(file: string): unknown {
  try {
    return parseJson(readFileSync(file, 'utf8'))
  } catch (cause) {
    throw new CliError('usage', `${file} cannot be read as JSON: ${messageOf(cause)}.`, { cause })
  }
}

function listIn(value: unknown): readonly unknown[] | undefined {
  if (Array.isArray(value)) return value
  if (!isObject(value)) return undefined
  return listIn(value['tools'] ?? value['result'])
}
