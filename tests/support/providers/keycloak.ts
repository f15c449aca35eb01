import type { Provider } from './provider.ts'

const REALM = '/realms/acme'
const OIDC = `${REALM}/protocol/openid-connect`

/** Keycloak 26. */
export const keycloak: Provider = {
  name: 'Keycloak',
  path: REALM,
  namesIssuer: true,
  // The access token lifespan, which is that of ID tokens too.
  lifeSeconds: 300,
  people: {
    ann: {
      id: 'b1c6a7f0-5d2e-4c55-9a0e-1f2f3d4c5b6a',
      name: 'Ann Archer',
      email: 'ann@acme.com',
      groups: ['tool-admin'],
    },
    bob: {
      id: '0e5f8d1c-93a4-4d77-8c61-7a1b2c3d4e5f',
      name: 'Bob Baker',
      email: 'bob@acme.com',
      groups: ['tool-user'],
    },
    eve: { id: '7d9f3a52-2b81-4f0e-b5c4-9e8d7c6b5a40', name: 'Eve Else', email: 'eve@acme.com', groups: [] },
  },
  endpoints: {
    authorize: `${OIDC}/auth`,
    token: `${OIDC}/token`,
    keys: `${OIDC}/certs`,
    userinfo: `${OIDC}/userinfo`,
  },
  documents: (base) => ({
    [`${REALM}/.well-known/openid-configuration`]: {
      issuer: base + REALM,
      authorization_endpoint: `${base}${OIDC}/auth`,
      token_endpoint: `${base}${OIDC}/token`,
      introspection_endpoint: `${base}${OIDC}/token/introspect`,
      userinfo_endpoint: `${base}${OIDC}/userinfo`,
      end_session_endpoint: `${base}${OIDC}/logout`,
      jwks_uri: `${base}${OIDC}/certs`,
      response_types_supported: ['code', 'none', 'id_token', 'code id_token'],
      code_challenge_methods_supported: ['plain', 'S256'],
      token_endpoint_auth_methods_supported: ['private_key_jwt', 'client_secret_basic', 'client_secret_post'],
      authorization_response_iss_parameter_supported: true,
      backchannel_logout_supported: true,
      backchannel_logout_session_supported: true,
    },
  }),
  idToken: ({ id, name, email, groups }, { client, session }) => ({
    jti: crypto.randomUUID(),
    auth_time: Math.floor(Date.now() / 1000),
    sub: id,
    typ: 'ID',
    azp: client,
    sid: session,
    at_hash: 'c0RSVLxJ5FZ9a9Fq7A0v9A',
    acr: '1',
    email_verified: true,
    name,
    preferred_username: email.split('@')[0],
    email,
    // Mappers write these into the ID token only if they are told to.
    realm_access: { roles: ['default-roles-acme', 'offline_access', ...groups] },
    groups: groups.map((group) => `/team/${group}`),
  }),
  accessToken: ({ id, name, email, groups }, { client, audience, session }) => ({
    jti: crypto.randomUUID(),
    auth_time: Math.floor(Date.now() / 1000),
    // "account" is there for everybody; the other one comes from a mapper.
    aud: [audience, 'account'],
    sub: id,
    typ: 'Bearer',
    azp: client,
    sid: session,
    acr: '1',
    'allowed-origins': ['*'],
    realm_access: { roles: ['default-roles-acme', 'offline_access', ...groups] },
    resource_access: { 'tool.gate': { roles: groups }, account: { roles: ['manage-account'] } },
    groups: groups.map((group) => `/team/${group}`),
    scope: 'openid profile email tools',
    email_verified: true,
    name,
    preferred_username: email.split('@')[0],
    email,
  }),
  userinfo: ({ id, name, email, groups }) => ({
    sub: id,
    name,
    email,
    groups: groups.map((group) => `/team/${group}`),
  }),
}
