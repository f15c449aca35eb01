import type { Caller } from '@toolgate/core'
import { KEY_ISSUER, type People, toCaller } from '../../auth/people.ts'
import { endsWithin, messageOf, sha256Hex } from '@toolgate/values'
import type { ReloadOptions } from './describe.ts'
import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { ConfigError } from '@toolgate/core'
import { ApiFault } from '../../model/faults.ts'
import type { GatewayConfig } from '../../config/config.ts'
import { replaceSection } from '../../config/places.ts'
import { ConfigFileError } from '../../config/problems.ts'
import { checkUsable } from '../../config/usable.ts'
import { nextTurn } from '../../util/next-turn.ts'
import type { RetiredServer } from '../../servers/fleet.ts'
import type { OpenedReplica, ReadProposed } from '../../replicas/open-replica.ts'
import type { Heart } from '../../heart/heart.ts'
import { type Revision, RULES, type Settings, withoutAsking } from '../../auth/revision.ts'
import { findEnded } from '../../auth/keyring.ts'
import { findChanges } from './changes.ts'
import type { RuleChange } from '../../model/reload.ts'
import { describeReload } from './describe.ts'
import type { Reload } from '../../model/reload.ts'
import { findUnproven } from '../../auth/tighter.ts'
import { compareAccess } from './who-gains.ts'
import { hashOfPolicy, type PolicyRevision, type PolicyRevisions, withRestored } from '../revisions/policy-revisions.ts'

const NEW_CERTIFICATE: RuleChange = { section: 'listen', what: 'changed', name: 'certificate' }

/** How long calls of a changed or removed server may continue. */
const RETIRE_MS = 30_000

const PUBLISHING = 'config:published'
/** How long a publication waits for other publications. */
const PUBLISH_WAIT_MS = 30_000

/** Replaces the rules of a running gateway by those of its file, all at once or not at all. */
export class Reloader {
  readonly #heart: Heart
  readonly #onReplaced: () => void
  readonly #policies: PolicyRevisions | undefined
  #before: Promise<unknown> = Promise.resolve()
  #waiting: string | undefined
  /** The salt of the hash of a text. Without it, people could guess secrets in the text. */
  readonly #salt = randomUUID()
  /** The ids of the commands that ran at the start, or when a person reloaded. No others run automatically. */
  #ran: readonly string[]

  /**
   * `onReplaced` is called in the turn in which the rules are replaced. Without `policies`, no policy is recorded or
   * restored.
   */
  constructor(heart: Heart, onReplaced: () => void, policies: PolicyRevisions | undefined) {
    this.#heart = heart
    this.#onReplaced = onReplaced
    this.#policies = policies
    this.#ran = heart.config.ran ?? []
  }

  /**
   * Reloads, one at a time. @throws {ConfigFileError} @throws {ConfigError} @throws {ApiFault} `reload_outdated`;
   * nothing changes
   */
  reload(options: ReloadOptions): Promise<Reload> {
    return options.publishes ? this.#publishFile(options) : this.#inTurn(() => this.#reload(options))
  }

  /** Applies the policy that was restored before the gateway stopped. @throws {ConfigError} if this file cannot have it */
  async open(): Promise<void> {
    const restored = await this.#policies?.restored()
    const config = restored && (await this.#read())
    if (restored && config?.policySource?.restored) {
      const { by, revision } = restored
      await this.#inTurn(() => this.#reload({ through: 'restore', by, restores: revision }, config))
    }
    await this.#note({ through: 'start' })
  }

  /**
   * Goes back to an earlier policy, and keeps the rest of the file. It applies over restarts, until the policy of the
   * file changes; with replicas it is published.
   *
   * @throws like `reload`; nothing changes
   */
  restore(earlier: Pick<PolicyRevision, 'revision' | 'text'>, asked: Omit<ReloadOptions, 'through'>): Promise<Reload> {
    const options = { ...asked, through: 'restore', restores: earlier.revision } as const
    return this.#heart.replica
      ? this.#publishPolicy(earlier, options)
      : this.#inTurn(() => this.#restore(earlier, options))
  }

  async #restore(earlier: Pick<PolicyRevision, 'revision' | 'text'>, options: ReloadOptions): Promise<Reload> {
    const { host, clock } = this.#heart
    const file = await host.read({ mayRun: this.#ran })
    const config = await withRestored(file, earlier, (text) => host.read({ mayRun: this.#ran, text }))
    const insteadOf = hashOfPolicy(file)
    const policies = this.#policies
    if (options.isDryRun === true || !policies || insteadOf === undefined) return this.#reload(options, config)
    const before = await policies.restored()
    const by = options.by === undefined ? {} : { by: options.by }
    // It is kept first: a crash must not bring the other policy back.
    await policies.keep({ ...earlier, insteadOf, at: clock.wallMs(), ...by })
    try {
      return await this.#reload(options, config)
    } catch (error) {
      await policies.keep(before)
      throw error
    }
  }

  /** Applies the policy of the file again, in place of the restored one. @throws {ApiFault} `revision_unknown` if none is */
  async release(asked: Omit<ReloadOptions, 'through'>): Promise<Reload> {
    return this.#inTurn(async () => {
      const before = await this.#policies?.restored()
      if (!before) throw notRestored(this.#heart.replica !== undefined)
      await this.#policies?.keep(undefined)
      try {
        return await this.#reload({ ...asked, through: 'api' }, await this.#heart.host.read({ mayRun: this.#ran }))
      } catch (error) {
        await this.#policies?.keep(before)
        throw error
      }
    })
  }

  /** Reads the file, with the restored policy if one applies. */
  async #read(how: { readonly mayRun?: readonly string[] } = {}): Promise<GatewayConfig> {
    const { host } = this.#heart
    const file = await host.read(how)
    return (await this.#policies?.applyTo(file, (text) => host.read({ ...how, text }))) ?? file
  }

  /** Records the policy in force. A failure is reported and changes nothing. */
  async #note(how: Pick<ReloadOptions, 'by' | 'through' | 'restores'> | { readonly through: 'start' }): Promise<void> {
    const { revisions, clock, onFault } = this.#heart
    const { policySource } = revisions.current
    const { through } = how
    const by = 'by' in how && how.by !== undefined ? { by: how.by } : {}
    const restores = 'restores' in how && how.restores !== undefined ? { restores: how.restores } : {}
    try {
      if (policySource) await this.#policies?.note(policySource, { at: clock.wallMs(), through, ...by, ...restores })
      // The policy of the file applies again.
      if (policySource?.restored === undefined && (await this.#policies?.restored()))
        await this.#policies?.keep(undefined)
    } catch (error) {
      onFault(error)
    }
  }

  /** Why a watched file is not applied yet. `undefined`: it is applied, or has not been checked. */
  get waiting(): string | undefined {
    return this.#waiting
  }

  /**
   * Applies the file if it is proven to grant no additional rights. Otherwise nothing changes, and `waiting` states
   * why. Never rejects.
   */
  async tighten(): Promise<void> {
    try {
      await this.#inTurn(() => this.#tighten())
    } catch {
      // The log has the details.
      this.#waiting = 'the file has a mistake, see the log'
    }
  }

  async #tighten(): Promise<void> {
    const { revisions } = this.#heart
    const config = await this.#read({ mayRun: this.#ran })
    if (config.notRun) return this.#wait(['secretCommands'], `not run: ${config.notRun.join(', ')}`)
    const planned = await this.#reload({ through: 'watch', isDryRun: true }, config)
    const next = revisions.next(config)
    // A receiver learns of calls.
    const asking = isDeepStrictEqual(revisions.current.asking, next.asking) ? [] : ['approvals']
    const unproven = [...findUnproven(revisions.current, next), ...asking]
    const mayGain = planned.notCompared !== undefined || planned.access.some((one) => one.gains.length > 0)
    const gains = mayGain ? ['access'] : []
    if (unproven.length + gains.length > 0) return this.#wait([...unproven, ...gains], cutLines(planned.text))
    await this.#reload({ through: 'watch' }, config)
  }

  #wait(sections: readonly string[], detail: string): void {
    const why = `the file has changed and waits for "toolgate reload": it may grant more (${sections.join(', ')})`
    if (this.#waiting !== why) this.#heart.log({ level: 'warn', message: why, detail })
    this.#waiting = why
  }

  /**
   * Checks a proposed configuration. Starts nothing, and runs no command that has not run before. @throws the reason
   * why it cannot run here
   */
  async check(readProposed: ReadProposed): Promise<void> {
    const config = await readProposed({ mayRun: this.#ran })
    await this.#reload({ through: 'api', isDryRun: true }, { ...config, notRun: [] })
  }

  #inTurn<T>(reload: () => Promise<T>): Promise<T> {
    const reloading = this.#before.then(reload)
    this.#before = reloading.catch((error: unknown) => {
      this.#heart.log({ level: 'error', message: 'nothing was reloaded', detail: messageOf(error) })
    })
    return reloading
  }

  async #publishFile(options: ReloadOptions): Promise<Reload> {
    const { replica } = this.#heart
    if (!replica) throw new ConfigError('reload', 'publishes only where replicas share "stores"')
    return this.#publish(options, await replica.readFile(), replica)
  }

  /** Publishes the published configuration with an earlier policy. */
  async #publishPolicy({ text }: Pick<PolicyRevision, 'text'>, options: ReloadOptions): Promise<Reload> {
    const { replica, revisions } = this.#heart
    if (!replica) throw new ConfigError('reload', 'publishes only where replicas share "stores"')
    const composed = replaceSection(replica.publication.running.text, revisions.current.policySource, text)
    return this.#publish(options, await replica.readText(composed), replica)
  }

  /**
   * Publishes a configuration. It does not hold the queue, as this replica must reload before the publication is
   * complete.
   */
  async #publish(options: ReloadOptions, config: GatewayConfig, replica: OpenedReplica): Promise<Reload> {
    const { revisions, redact } = this.#heart
    const { text = '' } = config
    const { running } = replica.publication
    const planned = await this.#inTurn(() => this.#reload({ ...options, isDryRun: true }, config))
    if (text === running.text) return planned
    const objections = await replica.proposals.ask(text)
    const lost = objections.map(({ id, why }) => `${id} cannot run it: ${why}`)
    if (lost.length > 0 && options.isForced !== true)
      throw new ConfigError('', `nothing was published. ${lost.join('; ')}`)
    if (options.isDryRun === true) return { ...planned, text: [...planned.text, ...lost] }
    const id = await this.#publishNext(text, options, running.id)
    const { id: revision, number } = revisions.current
    const { preview: _preview, ...plan } = planned
    const reload = { ...plan, isApplied: true, revision: { id: revision, number } }
    const { redactText } = redact.with(config.secrets)
    const lines = describeReload(reload, { isDryRun: false }).map((line) => redactText(line))
    return { ...reload, text: [`published ${id}: it is in force on all replicas`, ...lost, ...lines] }
  }

  /**
   * Publishes one text at a time. With a preview, the text must still replace the configuration that it was compared
   * with.
   */
  async #publishNext(text: string, { by, preview }: ReloadOptions, seen: string): Promise<string> {
    const { replica } = this.#heart
    if (!replica) throw new ConfigError('reload', 'publishes only where replicas share "stores"')
    const { publication, lock } = replica
    const lease = await lock.acquire(PUBLISHING, { deadlineMs: PUBLISH_WAIT_MS })
    try {
      if (preview !== undefined && (await publication.latestId()) !== seen) throw outdated()
      return (await publication.publish(text, by, { session: PUBLISHING, fencingToken: lease.fencingToken })).id
    } finally {
      await lease.release()
    }
  }

  /**
   * Returns the id of a change: a configuration and what it replaces. All replicas return the same id for the same
   * change.
   */
  #nameOf(config: GatewayConfig, before: Revision, next: Revision): string {
    const inForce = this.#heart.replica?.publication.running.id ?? `${this.#salt} ${before.number}`
    return sha256Hex(JSON.stringify([inForce, config.textHash ?? next.id])).slice(0, NAME_LENGTH)
  }

  async #reload(options: ReloadOptions, given?: GatewayConfig): Promise<Reload> {
    const { by, through, isDryRun = false, preview, restores } = options
    const { revisions, host, redact, door } = this.#heart
    checkRunning(door)
    const config = given ?? (await this.#read())
    checkUsable(config)
    const before = revisions.current
    checkKept(before.servers, config.servers)
    const next = revisions.next(config)
    const name = this.#nameOf(config, before, next)
    if (preview !== undefined && preview !== name) throw outdated()
    const serveCertificate = host.readCertificate()
    const changes = [...findChanges(before, next), ...(serveCertificate ? [NEW_CERTIFICATE] : [])]
    // The publisher has already been told, and this replica starts no calls meanwhile.
    const isAsked = changes.length > 0 && through !== 'publication'
    const comparison = isAsked
      ? await compareAccess(this.#heart.gate, before, next, signedInTo(door.people))
      : undefined
    const restartNeeded = findFixed(this.#heart.config, config)
    const isChanged = changes.length > 0 || !isSameSecrets(before, next)
    const isApplied = isChanged && !isDryRun
    await nextTurn()
    // The gateway may have begun to stop meanwhile, and must then start nothing.
    if (isApplied) checkRunning(door)
    if (isApplied) this.#apply(before, next, config)
    // The file is now applied.
    if (!isDryRun) [this.#waiting, this.#ran] = [undefined, config.ran ?? []]
    if (isApplied) serveCertificate?.()
    // The rules already apply, so the gained access is only reported.
    const { access = [], notCompared = 0 } = (await comparison?.whoGains()) ?? {}
    const { id, number } = isApplied ? next : before
    const { redactText } = redact.with(config.secrets)
    // The text of a clause may contain a filled-in secret.
    const shown = changes.map((change) => ({ ...change, name: redactText(change.name) }))
    const named = isDryRun && { preview: name }
    const left = notCompared > 0 && { notCompared }
    const reload = { isApplied, revision: { id, number }, changes: shown, access, ...left, restartNeeded, ...named }
    const lines = describeReload(reload, { isDryRun }).map((line) => redactText(line))
    const text = restores === undefined ? lines : [`policy revision ${restores}`, ...lines]
    if (isApplied) await this.#record(text, by, through)
    if (!isDryRun) await this.#note(options)
    const note = given || through === 'publication' ? undefined : await this.#heart.replica?.noteOnFile()
    return { ...reload, text: note === undefined ? text : [...text, note] }
  }

  /** Applies a revision in one turn, so that every decision uses either the old or the new rules. */
  #apply(before: Revision, next: Revision, config: GatewayConfig): void {
    const { revisions, redact, log, host, door } = this.#heart
    const { started, retired } = host.replace(next, () => {
      revisions.replace(next)
      redact.follow(config.secrets)
    })
    door.keys.renew()
    door.runs.renew()
    this.#onReplaced()
    revisions.end(findEnded(before.keyring, next.keyring))
    for (const upstream of started) void upstream.start()
    for (const server of retired) void this.#retire(server)
    for (const { path, message } of config.warnings ?? []) log({ level: 'warn', message: `${path}: ${message}` })
  }

  async #retire({ upstream, running }: RetiredServer): Promise<void> {
    const { config, onFault } = this.#heart
    try {
      await endsWithin(running.idle(), config.drainMs ?? RETIRE_MS)
      await upstream.close()
    } catch (error) {
      onFault(error)
    }
  }

  async #record(text: readonly string[], by: string | undefined, through: string): Promise<void> {
    const { log, stores, clock, onFault, gate } = this.#heart
    const { policyRevision, catalog } = gate
    const detail = cutLines(text, '\n')
    log({ level: 'info', message: `reloaded: ${cutLines(text)}` })
    try {
      await stores.audit.write({
        event: 'config_changed',
        reason: through,
        detail,
        wallMs: clock.wallMs(),
        policy_revision: policyRevision,
        catalog_revision: catalog.revision,
        ...(by === undefined ? {} : { user_id: by }),
      })
    } catch (error) {
      onFault(error)
    }
  }
}

/** @throws {ConfigError} */
function checkRunning({ stopping: { isStopping } }: Heart['door']): void {
  if (isStopping) throw new ConfigError('reload', 'is not possible while the gateway stops')
}

/**
 * Checks that no server loses a value that it has: a password manager that is locked for a moment stops no server.
 *
 * @throws {ConfigFileError}
 */
function checkKept(before: GatewayConfig['servers'], next: GatewayConfig['servers']): void {
  const complete = new Set(before.filter(({ absent }) => !absent).map(({ name }) => name))
  const lost = next.flatMap(({ name, absent = [] }) => (complete.has(name) ? absent : []))
  if (lost.length > 0) throw new ConfigFileError(lost)
}

const NAME_LENGTH = 16

/** A replica runs what is published, so that no policy is restored beside it. */
function notRestored(isReplica: boolean): ApiFault {
  const hint = isReplica ? ' With replicas, "toolgate reload" publishes the policy of the file.' : ''
  return new ApiFault('revision_unknown', `No earlier policy is restored, so nothing was reloaded.${hint}`)
}

function outdated(): ApiFault {
  return new ApiFault(
    'reload_outdated',
    'Nothing was applied: the file, or the configuration in force, is no longer the one of this preview. Preview it again.',
  )
}

const MAX_DETAIL = 2000

function cutLines(lines: readonly string[], between = '; '): string {
  const text = lines.map((line) => (between === '\n' ? line : line.trim())).join(between)
  return text.length > MAX_DETAIL ? `${text.slice(0, MAX_DETAIL)}…` : text
}

/** Whether the secrets are the same. A rotated secret does not change the names. */
function isSameSecrets(before: Revision, next: Revision): boolean {
  return isDeepStrictEqual(before.servers, next.servers) && isDeepStrictEqual(before.callers, next.callers)
}

/** The fields that the gateway computes itself. */
const NOT_FIELDS = [
  'file',
  'text',
  'textHash',
  'secrets',
  'secretCommands',
  'notRun',
  'ran',
  'warnings',
  'places',
  'policySource',
  // It is a part of each server and issuer.
  'proxy',
] as const
const NOT_SETTINGS: ReadonlySet<string> = new Set([...RULES, ...NOT_FIELDS])

function fixed(key: string, settings: ReadonlyMap<string, unknown>): unknown {
  return key === 'approvals' ? withoutAsking(settings.get(key) as Settings['approvals']) : settings.get(key)
}

/** Returns the settings that differ and need a restart. */
function findFixed(before: Settings, config: GatewayConfig): readonly string[] {
  const [old, now] = [new Map(Object.entries(before)), new Map(Object.entries(config))]
  return [...new Set([...old.keys(), ...now.keys()])]
    .filter((key) => !NOT_SETTINGS.has(key) && !isDeepStrictEqual(fixed(key, old), fixed(key, now)))
    .toSorted()
}

/** Returns the people who signed in, with the rights of their latest token. */
function signedInTo(people: Pick<People, 'list'>): readonly Caller[] {
  return people.list().flatMap((one) => (one.issuer === KEY_ISSUER ? [] : [toCaller(one)]))
}
