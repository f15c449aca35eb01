import { ConfigError } from '@toolgate/core'
import type { Room, RoomHealth } from '../../heart/room.ts'
import type { IssuerRow } from '../../model/rows.ts'
import { counter, type Family } from '../../telemetry/exposition.ts'
import type { RefusedTokens } from '../../auth/oauth/refusals.ts'

/** The metrics of logins: authorization servers, failed logins and refused tokens. */
export const login: Room = {
  name: 'login',
  open({ config, door }) {
    if (config.oidc && door.publicUrl === undefined)
      throw new ConfigError('publicUrl', 'is needed with oidc: people come back to a URL that their browser knows')
    const { logins } = door
    const help = 'Failed logins with wrong keys, at any endpoint.'
    return {
      metrics: [
        () => issuersFamily(door.issuers()),
        () => counter('toolgate_failed_logins_total', help, logins.count),
        () => refusedTokensFamily(door.refusedTokens()),
      ],
      health: (withReasons) => issuersHealth(door.issuers(), withReasons),
    }
  },
}

/** Returns the health of issuers. Probes without a key also see which ones are down, as their names are public. */
function issuersHealth(issuers: readonly IssuerRow[], withReasons: boolean): RoomHealth {
  if (issuers.length === 0) return { body: {} }
  const rows = issuers.map(({ problem, ...row }) => (withReasons && problem !== undefined ? { ...row, problem } : row))
  return { body: { issuers: rows } }
}

function refusedTokensFamily(refused: readonly RefusedTokens[]): Family {
  return {
    name: 'toolgate_refused_tokens_total',
    type: 'counter',
    help: 'Refused tokens of OAuth, by issuer and reason.',
    samples: refused.map(({ issuer, reason, count }) => ({ labels: { issuer, reason }, value: count })),
  }
}

function issuersFamily(issuers: readonly IssuerRow[]): Family {
  return {
    name: 'toolgate_issuer_up',
    type: 'gauge',
    help: 'Whether the keys of an authorization server can be read: 1, also before the first token, or 0.',
    samples: issuers.map(({ name, status }) => ({ labels: { issuer: name }, value: status === 'down' ? 0 : 1 })),
  }
}
