//! `plimsoll acp`: the agent of an editor, by the Agent Client Protocol over standard input and
//! output. The agent is the same as in `run` and `chat`. Only protocol messages are written to
//! standard output.

mod calls;
mod content;
mod outbox;
mod permission;
mod replay;
mod server;
mod servers;
mod session;
mod updates;

use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol::v1::schema::{
    CancelNotification, CloseSessionRequest, InitializeRequest, ListSessionsRequest,
    LoadSessionRequest, LoadSessionResponse, NewSessionRequest, NewSessionResponse, PromptRequest,
    SetSessionModeRequest,
};
use agent_client_protocol::{Agent, Error, on_receive_notification, on_receive_request};
use tokio::time::sleep;

use self::outbox::stdio;
use self::server::{AcpServer, modes};
use crate::agent;
use crate::args::AcpArgs;
use crate::asked_to_end;
use crate::error::{CliError, DONE, INTERRUPTED};

/// Maximum time for closing the connection if the client does not read.
const ENDING: Duration = Duration::from_secs(5);

/// Runs the command.
pub(crate) async fn run(args: &AcpArgs) -> Result<u8, CliError> {
    if args.sources.flags.has("root") {
        return Err(CliError::usage(
            "an editor names a folder for each session, so --root has no effect; leave it out",
        ));
    }
    let mut sources = args.sources.clone();
    sources.consent(args.yes);
    let server = AcpServer::new(sources, agent::store().await?);
    let server = Arc::new(server);
    match serve(&server).await {
        Ok(code) => Ok(code),
        Err(error) => {
            server.close_all().await;
            Err(CliError::failed(format!("the connection failed: {error}")))
        }
    }
}

/// Serves the connection until the client ends it or the process is interrupted.
async fn serve(server: &Arc<AcpServer>) -> Result<u8, Error> {
    let connection = Agent
        .v1()
        .name("plimsoll")
        .on_receive_request(
            async |_: InitializeRequest, responder, _| responder.respond(AcpServer::initialize()),
            on_receive_request!(),
        )
        .on_receive_request(
            async |request: NewSessionRequest, responder, client| {
                let given = (request.cwd, request.mcp_servers);
                let opening = Arc::clone(server).open(None, given, client);
                server.answer_opened(responder, opening, |session| {
                    NewSessionResponse::new(session.id().clone()).modes(modes(session.gate.mode()))
                })
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async |request: LoadSessionRequest, responder, client| {
                let (id, given) = (request.session_id, (request.cwd, request.mcp_servers));
                let opening = Arc::clone(server).open(Some(id), given, client);
                server.answer_opened(responder, opening, |session| {
                    LoadSessionResponse::new().modes(modes(session.gate.mode()))
                })
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async |request: CloseSessionRequest, responder, _| {
                server.answer(responder, Arc::clone(server).close(request.session_id))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async |request: ListSessionsRequest, responder, _| {
                server.answer(responder, Arc::clone(server).list(request))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async |request: SetSessionModeRequest, responder, _| {
                responder.respond_with_result(server.set_mode(&request))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async |request: PromptRequest, responder, _| match server.prompt(request) {
                Ok(prompt) => server.answer(responder, prompt),
                Err(error) => responder.respond_with_error(error),
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            async |request: CancelNotification, _| {
                server.cancel(&request.session_id);
                Ok(())
            },
            on_receive_notification!(),
        );
    connection
        .connect_with(stdio(), async |client| {
            let code = tokio::select! {
                () = client.incoming_closed() => DONE,
                Ok(()) = asked_to_end() => INTERRUPTED,
            };
            server.close_all().await;
            tokio::spawn(async move {
                sleep(ENDING).await;
                std::process::exit(i32::from(code));
            });
            Ok(code)
        })
        .await
}
