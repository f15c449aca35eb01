import { createHash } from 'node:crypto'
import type { Person, Provider } from './provider.ts'

export const TENANT = '8c2b7c1e-4f0d-4a5b-9b0a-2d1e3f4a5b6c'
/** The issuer of access tokens of the first version, at another host. */
export const V1_ISSUER = `https://sts.windows.net/${TENANT}/`
const V2 = `/${TENANT}/v2.0`
const OAUTH = `/${TENANT}/oauth2/v2.0`

/** Each application knows a person by another subject. */
function pairwise({ id }: Person, application: string): string {
  return createHash('sha256').update(`${id} ${application}`).digest('base64url')
}

/** Microsoft Entra ID, with tokens of its second version. */
export const entra: Provider = {
  name: 'Microsoft Entra ID',
  path: V2,
  namesIssuer: false,
  lifeSeconds: 3900,
  people: {
    ann: {
      id: '690222be-ff1a-4d56-abd1-7e4f7d38e474',
      name: 'Ann Archer',
      email: 'ann@acme.com',
      groups: ['Tool.Admin'],
    },
    bob: {
      id: '2f1b6c0a-33c1-4c7e-8f43-5f2c0f7b9a11',
      name: 'Bob Baker',
      email: 'bob@acme.com',
      groups: ['Tool.User'],
    },
    eve: { id: '99d3f6a4-8a56-4b1c-a0e6-0c1d2e3f4a5b', name: 'Eve Else', email: 'eve@acme.com', groups: [] },
  },
  endpoints: {
    authorize: `${OAUTH}/authorize`,
    token: `${OAUTH}/token`,
    keys: `/${TENANT}/discovery/v2.0/keys`,
    userinfo: '/oidc/userinfo',
  },
  documents(base) {
    const of = (issuer: string, directory: string) => ({
      token_endpoint: `${base}/${directory}/oauth2/v2.0/token`,
      token_endpoint_auth_methods_supported: ['client_secret_post', 'private_key_jwt', 'client_secret_basic'],
      jwks_uri: `${base}/${directory}/discovery/v2.0/keys`,
      response_modes_supported: ['query', 'fragment', 'form_post'],
      subject_types_supported: ['pairwise'],
      id_token_signing_alg_values_supported: ['RS256'],
      response_types_supported: ['code', 'id_token', 'code id_token', 'id_token token'],
      scopes_supported: ['openid', 'profile', 'email', 'offline_access'],
      issuer: base + issuer,
      request_uri_parameter_supported: false,
      userinfo_endpoint: `${base}/oidc/userinfo`,
      authorization_endpoint: `${base}/${directory}/oauth2/v2.0/authorize`,
      http_logout_supported: true,
      frontchannel_logout_supported: true,
      end_session_endpoint: `${base}/${directory}/oauth2/v2.0/logout`,
      kerberos_endpoint: `${base}/${directory}/kerberos`,
      tenant_region_scope: 'EU',
      cloud_instance_name: 'microsoftonline.com',
    })
    return {
      [`${V2}/.well-known/openid-configuration`]: of(V2, TENANT),
      // These serve every directory, so that no issuer is written there.
      '/common/v2.0/.well-known/openid-configuration': of('/{tenantid}/v2.0', 'common'),
      '/organizations/v2.0/.well-known/openid-configuration': of('/{tenantid}/v2.0', 'organizations'),
    }
  },
  // No "auth_time" and no "email_verified": they are optional claims. No "sid" either.
  idToken: (person, { client }) => ({
    ver: '2.0',
    sub: pairwise(person, client),
    nbf: Math.floor(Date.now() / 1000),
    aio: 'ATQAy/8TAAAA',
    rh: '0.AX0',
    uti: 'w3b8',
    name: person.name,
    preferred_username: person.email,
    oid: person.id,
    tid: TENANT,
    ...(person.groups.length > 0 && { roles: person.groups }),
  }),
  accessToken: (person, { client, audience }) => ({
    ver: '2.0',
    aud: audience,
    sub: pairwise(person, audience),
    nbf: Math.floor(Date.now() / 1000),
    aio: 'ATQAy/8TAAAA',
    azp: client,
    azpacr: '1',
    name: person.name,
    preferred_username: person.email,
    oid: person.id,
    rh: '0.AX0',
    scp: 'tools tools.read',
    tid: TENANT,
    uti: 'w3b8',
    ...(person.groups.length > 0 && { roles: person.groups }),
  }),
  userinfo: (person, client) => ({ sub: pairwise(person, client), name: person.name, email: person.email }),
}

/** An access token of the first version: other names of the issuer, the audience and the client. */
export function v1(client = '5a1c9d0e'): Readonly<Record<string, unknown>> {
  return { iss: V1_ISSUER, ver: '1.0', azp: undefined, appid: client, appidacr: '1', unique_name: 'ann@acme.com' }
}

/** The claims of somebody in more than 200 groups. */
export const OVERAGE = {
  groups: undefined,
  _claim_names: { groups: 'src1' },
  _claim_sources: { src1: { endpoint: `https://graph.windows.net/${TENANT}/users/690222be/getMemberObjects` } },
}
