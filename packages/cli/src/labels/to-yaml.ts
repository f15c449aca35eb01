import { Document } from 'yaml'
import { printable } from '../io.ts'
import type { LabelProposal } from './propose.ts'

/** Returns proposals as YAML for the configuration. Comments mark what a person must check. */
export function toYaml(proposals: readonly LabelProposal[]): string {
  const trusted = proposals.filter(({ mayBeTrusted }) => mayBeTrusted).map(({ server, name }) => `${server}:${name}`)
  const document = new Document()
  document.contents = document.createNode({ labels: { trusted }, servers: serversOf(proposals, document) }) as never
  document.commentBefore = ' Trust a tool only if nobody but you and its user can write what it returns.'
  const unclear = proposals.filter(({ effects, isLabelled }) => effects === undefined && !isLabelled)
  if (unclear.length > 0) {
    const names = unclear.map(({ server, name }) => `   ${printable(`${server}:${name}`)}`)
    document.comment = [' Nothing says what these do. Tag them by hand:', ...names].join('\n')
  }
  return document.toString({ lineWidth: 0 })
}

type WrittenServers = ReadonlyMap<string, { readonly tools: Map<string, unknown> }>

function serversOf(proposals: readonly LabelProposal[], document: Document): WrittenServers {
  const servers = new Map<string, { readonly tools: Map<string, unknown> }>()
  for (const { server, name, effects = [], addressees, compare } of proposals) {
    const tags = effects.filter((effect) => effect !== 'reads')
    if (tags.length === 0) continue
    let own = servers.get(server)
    if (!own) servers.set(server, (own = { tools: new Map() }))
    const overlay = { tags, ...(addressees.length > 0 && { addressees }), ...(compare && { compare }) }
    own.tools.set(name, document.createNode(overlay, { flow: true }))
  }
  return servers
}
