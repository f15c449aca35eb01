//! A server of rmcp with tools, a resource, a template and prompts: on stdio, or over HTTP at the address that is given.
use rmcp::{
    ErrorData, Json, ServerHandler, ServiceExt,
    handler::server::{router::prompt::PromptRouter, router::tool::ToolRouter, wrapper::Parameters},
    model::{
        GetPromptRequestParams, GetPromptResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
        PaginatedRequestParams, PromptMessage, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult,
        Resource, ResourceContents, ResourceTemplate, Role, ServerCapabilities, ServerConfig,
    },
    prompt, prompt_handler, prompt_router, schemars,
    service::{RequestContext, RoleServer},
    tool, tool_handler, tool_router,
    transport::{
        stdio,
        streamable_http_server::{
            StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
        },
    },
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[derive(Deserialize, JsonSchema)]
struct Numbers {
    /// The first number.
    a: i64,
    b: i64,
    note: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Sum {
    sum: i64,
    note: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Review {
    language: String,
    focus: Option<String>,
}

#[derive(Clone)]
struct Server {
    tool_router: ToolRouter<Self>,
    prompt_router: PromptRouter<Self>,
}

#[tool_router]
impl Server {
    fn new() -> Self {
        Self { tool_router: Self::tool_router(), prompt_router: Self::prompt_router() }
    }

    /// Adds two numbers.
    #[tool(annotations(title = "Addition", read_only_hint = true))]
    async fn add(&self, Parameters(Numbers { a, b, note }): Parameters<Numbers>) -> Result<Json<Sum>, ErrorData> {
        let sum = a.checked_add(b).ok_or_else(|| ErrorData::invalid_params("the sum is too large", None))?;
        Ok(Json(Sum { sum, note }))
    }

    /// Fails.
    #[tool]
    async fn fail(&self) -> Result<String, String> {
        Err("It failed.".into())
    }
}

#[prompt_router]
impl Server {
    /// Asks for a review.
    #[prompt(name = "review")]
    async fn review(&self, Parameters(Review { language, focus }): Parameters<Review>) -> Vec<PromptMessage> {
        let focus = focus.unwrap_or_else(|| "everything".into());
        vec![PromptMessage::new_text(Role::User, format!("Review the {language} code: {focus}."))]
    }
}

#[tool_handler(router = self.tool_router)]
#[prompt_handler(router = self.prompt_router)]
impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let offers = ServerCapabilities::builder().enable_tools().enable_resources().enable_prompts().build();
        ServerConfig::new(offers)
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(vec![Resource::new("note://one", "one")]))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(vec![ResourceTemplate::new("note://{name}", "note")]))
    }

    async fn read_resource(
        &self,
        ReadResourceRequestParams { uri, .. }: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        if uri.ends_with("none") {
            return Err(ErrorData::resource_not_found("no such note", None));
        }
        Ok(ReadResourceResult::new(vec![ResourceContents::text(format!("The text of {uri}."), uri)]).into())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let Some(address) = std::env::args().nth(1) else {
        let running = Server::new().serve(stdio()).await.expect("a client");
        running.waiting().await.expect("an end");
        return;
    };
    let service = StreamableHttpService::new(
        || Ok(Server::new()),
        Arc::new(LocalSessionManager::default()),
        StreamableHttpServerConfig::default(),
    );
    let listener = tokio::net::TcpListener::bind(address).await.expect("a free address");
    axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await.expect("an end");
}
