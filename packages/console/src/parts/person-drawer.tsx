import { type ReactElement, useContext } from 'react'
import { linkTo } from '../address.ts'
import { count, formatNumber } from '../format.ts'
import { useApi } from '../hooks.ts'
import { mayManageKeys, wordOfUse } from '../keys.ts'
import { haltsOn, OWN, parsePersonId, personId, whoKey, type Who } from '../people.ts'
import { useWaiting } from '../pending.ts'
import { Session } from '../session.ts'
import { CALL_LOOKS } from '../states.ts'
import type { CallsBody, HaltsBody, KeysBody, PeopleBody, PersonRow, RunsBody, ServersBody } from '../wire.ts'
import { Badge } from './badges.tsx'
import { Budgets } from './budgets.tsx'
import { Connections } from './connection-table.tsx'
import { Drawer, Fact, Part } from './drawer.tsx'
import { Exact } from './exact.tsx'
import { HaltButton } from './halt-dialog.tsx'
import { Halted } from './halts.tsx'
import { KeyTable } from './key-table.tsx'
import { Loading } from './panels.tsx'
import { runLink } from './run-table.tsx'
import { TenantTag } from './tenant-tag.tsx'
import { Ago, At } from './when.tsx'

interface PersonDrawerProps {
  /** The person's `personId`, or `OWN`. */
  readonly id: string
  /** The person, if they are loaded. */
  readonly held: PersonRow | undefined
}

/** Shows one person: their keys and roles, the halts on them, the tools that they see, and their activity. */
export function PersonDrawer({ id, held }: PersonDrawerProps): ReactElement {
  const { name, tenant, issuer } = parsePersonId(id)
  const found = useApi<PeopleBody>({
    key: ['people', 'one', id],
    path: '/api/people',
    parameters: id === OWN ? {} : { text: name, tenant },
    enabled: !held,
  })
  const isThem = (row: PersonRow): boolean =>
    id === OWN
      ? row.isSelf === true
      : row.name === name && row.tenant === tenant && (issuer === undefined || row.issuer === issuer)
  const people = found.data?.people
  // Somebody of the file and somebody who signed in may have one name.
  const row = held ?? people?.find((one) => personId(one) === id) ?? people?.find(isThem)
  return (
    <Drawer
      id={id}
      title={<Exact text={row?.name ?? name} />}
      beside={row && <TenantTag tenant={row.tenant} />}
      isWide
      what="person"
      row={row}
      isUnknown={Boolean(found.data ?? found.error)}
    >
      {(one) => <Person row={one} />}
    </Drawer>
  )
}

function Person({ row }: { row: PersonRow }): ReactElement {
  const { user, tenant } = row
  const who: Who = { user, tenant }
  return (
    <>
      <Facts row={row} who={who} />
      <Sees row={row} />
      {user !== undefined && (
        <>
          <HaltsOn who={{ user, ...(tenant !== undefined && { tenant }) }} />
          <Keys who={who} />
          {row.isSelf ? (
            <Part title="Connections">
              <p className="dim">Servers that act with your own account there. Only your calls use it.</p>
              <Connections />
            </Part>
          ) : (
            row.connections && (
              <Part title="Connections">
                <Connections of={who} />
              </Part>
            )
          )}
          <Instances who={who} />
          <Budgets of={who} />
          <Recent who={who} />
        </>
      )}
    </>
  )
}

function Facts({ row, who }: { row: PersonRow; who: Who }): ReactElement {
  const { client, calls, refused, lastCallAt, seenRoles = [], rolesFrom, issuer, firstSeenAt, lastSeenAt } = row
  const clients = row.clients ?? (client === undefined ? [] : [client])
  const waiting = (useWaiting().data?.approvals ?? []).filter((one) => whoKey(one) === whoKey(who)).length
  const asked = { user: who.user ?? '', tenant: who.tenant ?? '' }
  return (
    <dl className="facts">
      {(seenRoles.length > 0 || rolesFrom) && (
        <Fact name="Roles">
          {seenRoles.length > 0 ? <Exact text={seenRoles.join(', ')} /> : 'none'} <RolesFrom row={row} />
        </Fact>
      )}
      {issuer !== undefined && (
        <Fact name="Signs in at">
          <Exact text={issuer} className="id" />
        </Fact>
      )}
      {clients.length > 0 && (
        <Fact name={clients.length === 1 ? 'Client' : 'Clients'}>
          <Exact text={clients.join(', ')} className="id" />
        </Fact>
      )}
      {firstSeenAt !== undefined && (
        <Fact name="First seen">
          <At at={firstSeenAt} />
        </Fact>
      )}
      {lastSeenAt !== undefined && (
        <Fact name="Last seen">
          <Ago ms={lastSeenAt} />
        </Fact>
      )}
      <Fact name="Calls this week">
        {calls === 0 ? (
          'none'
        ) : (
          <>
            <a href={linkTo('calls', { ...asked, range: 'last week' })}>{count(calls, 'call')}</a>
            {refused > 0 && (
              <>
                ,{' '}
                <a href={linkTo('calls', { ...asked, range: 'last week', outcome: 'refused' })}>
                  {formatNumber(refused)} refused
                </a>
              </>
            )}
          </>
        )}
      </Fact>
      {lastCallAt !== undefined && (
        <Fact name="Last call">
          <Ago ms={lastCallAt} />
        </Fact>
      )}
      {waiting > 0 && (
        <Fact name="Approvals">
          <a href={linkTo('approvals', asked)}>{formatNumber(waiting)} waiting</a>
        </Fact>
      )}
    </dl>
  )
}

/** Shows the tools that agents with these rights see. */
function Sees({ row }: { row: PersonRow }): ReactElement {
  const { callers, user, tenant, seenRoles, rolesFrom } = row
  const whose = row.as === undefined ? { caller: JSON.stringify({ user, tenant, roles: seenRoles }) } : { as: row.as }
  return (
    <Part title="Sees">
      {callers.length === 0 && (
        <p className="dim">
          The configuration has no key of this user.{' '}
          {user !== undefined && (row.as !== undefined || seenRoles) && (
            <a href={linkTo('tools', whose)}>See as, with the roles of the latest {rolesFrom?.by ?? 'call'}</a>
          )}
          {row.visible !== undefined && ` ${count(row.visible, 'tool')}`}
          {row.tokens !== undefined && ` · ${formatNumber(row.tokens)} tokens`}
        </p>
      )}
      <ul className="stack tight sees">
        {callers.map(({ as, for: use, roles, visible, tokens }) => (
          <li key={`${use} ${as}`}>
            <a href={linkTo('tools', { as })}>
              See as <Exact text={as} />
            </a>
            <span className="dim">
              {wordOfUse({ for: use })}
              {roles.length > 0 && <Exact text={` · ${roles.join(', ')}`} />}
              {visible !== undefined && ` · ${count(visible, 'tool')}`}
              {tokens !== undefined && ` · ${formatNumber(tokens)} tokens`}
            </span>
          </li>
        ))}
      </ul>
    </Part>
  )
}

/** Says where the roles of a person come from: `of the token of 14:03 from login.acme.example`. */
export function RolesFrom({ row: { rolesFrom } }: { row: Pick<PersonRow, 'rolesFrom'> }): ReactElement | null {
  if (!rolesFrom) return null
  return (
    <span className="dim">
      of the {rolesFrom.by} of <At at={rolesFrom.at} /> from <Exact text={hostOf(rolesFrom.issuer)} />
    </span>
  )
}

function hostOf(issuer: string): string {
  return URL.canParse(issuer) ? `${new URL(issuer).host}${new URL(issuer).pathname.replace(/\/$/, '')}` : issuer
}

function HaltsOn({ who }: { who: { readonly user: string; readonly tenant?: string } }): ReactElement | null {
  const { data } = useApi<HaltsBody>({ key: ['halts'], path: '/api/halts' })
  if (!data) return null
  const halts = haltsOn(who, data.halts)
  if (halts.length === 0 && !data.mayHalt) return null
  return (
    <Part title="Halts">
      {halts.length === 0 ? (
        <p className="dim">Nothing of this person is halted.</p>
      ) : (
        <ul className="stack tight halts-on">
          {halts.map((row) => (
            <Halted key={row.id} row={row} />
          ))}
        </ul>
      )}
      <HaltButton target={who} label="Halt this person…" />
    </Part>
  )
}

/** Shows a person's keys, to people who may manage keys. */
function Keys({ who }: { who: Who }): ReactElement | null {
  const session = useContext(Session)
  const mayManage = session !== undefined && mayManageKeys(session)
  const { data } = useApi<KeysBody>({
    key: ['keys', who],
    path: '/api/keys',
    parameters: { user: who.user, tenant: who.tenant },
    everyMs: 5000,
    enabled: mayManage,
  })
  if (!mayManage) return null
  return (
    <Part title="Keys">
      {data === undefined && <Loading what="the keys" />}
      {data?.keys.length === 0 && <p className="dim">None: this person signs in with an account.</p>}
      {data && data.keys.length > 0 && <KeyTable keys={data.keys} />}
      <p>
        <a href={linkTo('people', { view: 'keys' })}>Make a key, and all keys</a>
      </p>
    </Part>
  )
}

function Instances({ who }: { who: Who }): ReactElement | null {
  const { data } = useApi<ServersBody>({ key: ['servers'], path: '/api/servers' })
  const own = (data?.servers ?? []).flatMap(({ name, instances }) =>
    (instances?.users ?? []).filter((one) => whoKey(one) === whoKey(who)).map(({ state }) => ({ name, state })),
  )
  if (own.length === 0) return null
  return (
    <Part title="Instances of servers">
      <ul className="stack tight sees">
        {own.map(({ name, state }) => (
          <li key={name}>
            <Exact text={name} className="id" /> <span className="dim">{state}</span>
          </li>
        ))}
      </ul>
    </Part>
  )
}

const SHOWN = 5

/** Shows the latest calls and runs. The filter by user also finds users of the same name in other tenants. */
function Recent({ who: { user = '', tenant } }: { who: Who }): ReactElement {
  const asked = { user, tenant: tenant ?? '' }
  const calls = useApi<CallsBody>({
    key: ['calls', 'of', asked],
    path: '/api/calls',
    parameters: { ...asked, limit: 20 },
  })
  const runs = useApi<RunsBody>({ key: ['runs', 'of', asked], path: '/api/runs', parameters: { ...asked, limit: 20 } })
  const isTheirs = (row: { readonly tenant?: string | undefined }): boolean => row.tenant === tenant
  const latest = (calls.data?.calls ?? []).filter(({ records }) => records.some(isTheirs)).slice(0, SHOWN)
  const latestRuns = (runs.data?.runs ?? []).filter(isTheirs).slice(0, SHOWN)
  return (
    <>
      <Part title="Recent calls">
        {latest.length === 0 && <p className="dim">None.</p>}
        <ol className="recent">
          {latest.map(({ id, outcome, startedAt, records }) => (
            <li key={id}>
              <a href={linkTo('calls', { ...asked, open: id })}>
                <At at={startedAt} />
              </a>
              <Exact text={records.at(-1)?.tool ?? ''} className="id" />
              <Badge word={outcome} look={CALL_LOOKS[outcome]} />
            </li>
          ))}
        </ol>
        {latest.length > 0 && <a href={linkTo('calls', asked)}>All calls</a>}
      </Part>
      {latestRuns.length > 0 && (
        <Part title="Runs">
          <ol className="recent">
            {latestRuns.map((run) => (
              <li key={`${run.kind} ${run.id}`}>
                <a href={runLink(run, asked)}>
                  <Exact text={run.id} className="id" />
                </a>
                <span className="dim">{count(run.calls, 'call')}</span>
                <Ago ms={run.lastAt} />
              </li>
            ))}
          </ol>
          <a href={linkTo('runs', asked)}>All runs</a>
        </Part>
      )}
    </>
  )
}
