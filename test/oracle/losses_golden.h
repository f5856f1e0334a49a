/* Written by losses.py with PyTorch 2.15.0+cu132. */
static const LossCase loss_golden[] = {
    { "mse_loss", "2x3,2x3,-", "reduction=mean",
      "sdsssdddddsdhshsdsbbsdhb-" },
    { "mse_loss", "2x3,2x3,-", "reduction=none",
      "sdsssdddddsdhshsdsbbsdhb-" },
    { "mse_loss", "2x3,2x3,2x3", "reduction=mean",
      "sdsssdddddsdssssdssssdsssdddddddddddddddddddddddddsdsssdddddsdhshsdssssdhshsdsssdddddsdssssdsbbsdsbb"
      "sdsssdddddsdhshsdsbbsdhbs" },
    { "mse_loss", "2x3,2x3,2x3", "reduction=none",
      "sdsssdddddsdssssdssssdsssdddddddddddddddddddddddddsdsssdddddsdhshsdssssdhshsdsssdddddsdssssdsbbsdsbb"
      "sdsssdddddsdhshsdsbbsdhbl" },
    { "l1_loss", "2x3,2x3,-", "reduction=mean",
      "sdsssdddddsdhshsdsbbsdhb-" },
    { "l1_loss", "2x3,2x3,-", "reduction=none",
      "sdsssdddddsdhshsdsbbsdhbl" },
    { "l1_loss", "2x3,2x3,2x3", "reduction=mean",
      "sdsssdddddsdssssdssssdsssdddddddddddddddddddddddddsdsssdddddsdhshsdssssdhshsdsssdddddsdssssdsbbsdsbb"
      "sdsssdddddsdhshsdsbbsdhbs" },
    { "l1_loss", "2x3,2x3,2x3", "reduction=none",
      "sdsssdddddsdssssdssssdsssdddddddddddddddddddddddddsdsssdddddsdhshsdssssdhshsdsssdddddsdssssdsbbsdsbb"
      "sdsssdddddsdhshsdsbbsdhbl" },
    { "smooth_l1_loss", "2x3,2x3", "reduction=mean",
      "sdsssdddddsdhshsdsbbsdhb-" },
    { "smooth_l1_loss", "2x3,2x3", "reduction=none",
      "sdsssdddddsdhshsdsbbsdhb-" },
    { "smooth_l1_loss", "2x3,2x3", "reduction=mean beta=0",
      "sdsssdddddsdhshsdsbbsdhb-" },
    { "smooth_l1_loss", "2x3,2x3", "reduction=none beta=0",
      "sdsssdddddsdhshsdsbbsdhbl" },
    { "huber_loss", "2x3,2x3,-", "reduction=mean",
      "sssssdddddhhhhhbbbbb-----" },
    { "huber_loss", "2x3,2x3,-", "reduction=none",
      "sssssdddddhhhhhbbbbb-----" },
    { "huber_loss", "2x3,2x3,2x3", "reduction=mean",
      "sdssssdssssdssssdssssdsssdddddddddddddddddddddddddsdhshsdhshsdhshsdhshsdhshsdsbbsdsbbsdsbbsdsbbsdsbb"
      "-------------------------" },
    { "huber_loss", "2x3,2x3,2x3", "reduction=none",
      "sdssssdssssdssssdssssdsssdddddddddddddddddddddddddsdhshsdhshsdhshsdhshsdhshsdsbbsdsbbsdsbbsdsbbsdsbb"
      "-------------------------" },
    { "kl_div", "2x3,2x3", "reduction=mean",
      "sdss-dddd-sdhs-sdsb------" },
    { "kl_div", "2x3,2x3", "reduction=none",
      "sdss-dddd-sdhs-sdsb------" },
    { "kl_div", "2x3,2x3", "reduction=mean log_target=1",
      "sdss-dddd-sdhs-sdsb------" },
    { "kl_div", "2x3,2x3", "reduction=none log_target=1",
      "sdss-dddd-sdhs-sdsb------" },
    { "binary_cross_entropy", "2x3,2x3,-", "reduction=mean",
      "s-----d-----h-----b------" },
    { "binary_cross_entropy", "2x3,2x3,-", "reduction=none",
      "s-----d-----h-----b------" },
    { "binary_cross_entropy", "2x3,2x3,3", "reduction=mean",
      "sssss-------------------------ddddd-------------------------hhhhh-------------------------bbbbb-----"
      "-------------------------" },
    { "binary_cross_entropy", "2x3,2x3,3", "reduction=none",
      "sssss-------------------------ddddd-------------------------hhhhh-------------------------bbbbb-----"
      "-------------------------" },
    { "binary_cross_entropy_with_logits", "2x3,2x3,-,-", "reduction=mean",
      "sdhb-sdhb-sdhb-sdhb------" },
    { "binary_cross_entropy_with_logits", "2x3,2x3,-,-", "reduction=none",
      "sdhb-sdhb-sdhb-sdhb------" },
    { "binary_cross_entropy_with_logits", "2x3,2x3,3,-", "reduction=mean",
      "sssssdddddhhhhhbbbbb-----sssssdddddhhhhhbbbbb-----sssssdddddhhhhhbbbbb-----sssssdddddhhhhhbbbbb-----"
      "-------------------------" },
    { "binary_cross_entropy_with_logits", "2x3,2x3,3,-", "reduction=none",
      "sssssdddddhhhhhbbbbb-----sssssdddddhhhhhbbbbb-----sssssdddddhhhhhbbbbb-----sssssdddddhhhhhbbbbb-----"
      "-------------------------" },
    { "binary_cross_entropy_with_logits", "2x3,2x3,-,3", "reduction=mean",
      "sssssdddddhhhhhbbbbb-----sssssdddddhhhhhbbbbb-----sssssdddddhhhhhbbbbb-----sssssdddddhhhhhbbbbb-----"
      "-------------------------" },
    { "binary_cross_entropy_with_logits", "2x3,2x3,-,3", "reduction=none",
      "sssssdddddhhhhhbbbbb-----sssssdddddhhhhhbbbbb-----sssssdddddhhhhhbbbbb-----sssssdddddhhhhhbbbbb-----"
      "-------------------------" },
    { "binary_cross_entropy_with_logits", "2x3,2x3,3,3", "reduction=mean",
      "sssssssssssssssssssssssssdddddddddddddddddddddddddhhhhhhhhhhhhhhhhhhhhhhhhhbbbbbbbbbbbbbbbbbbbbbbbbb"
      "-------------------------sssssssssssssssssssssssssdddddddddddddddddddddddddhhhhhhhhhhhhhhhhhhhhhhhhh"
      "bbbbbbbbbbbbbbbbbbbbbbbbb-------------------------sssssssssssssssssssssssssddddddddddddddddddddddddd"
      "hhhhhhhhhhhhhhhhhhhhhhhhhbbbbbbbbbbbbbbbbbbbbbbbbb-------------------------sssssssssssssssssssssssss"
      "dddddddddddddddddddddddddhhhhhhhhhhhhhhhhhhhhhhhhhbbbbbbbbbbbbbbbbbbbbbbbbb-------------------------"
      "----------------------------------------------------------------------------------------------------"
      "-------------------------" },
    { "binary_cross_entropy_with_logits", "2x3,2x3,3,3", "reduction=none",
      "sssssssssssssssssssssssssdddddddddddddddddddddddddhhhhhhhhhhhhhhhhhhhhhhhhhbbbbbbbbbbbbbbbbbbbbbbbbb"
      "-------------------------sssssssssssssssssssssssssdddddddddddddddddddddddddhhhhhhhhhhhhhhhhhhhhhhhhh"
      "bbbbbbbbbbbbbbbbbbbbbbbbb-------------------------sssssssssssssssssssssssssddddddddddddddddddddddddd"
      "hhhhhhhhhhhhhhhhhhhhhhhhhbbbbbbbbbbbbbbbbbbbbbbbbb-------------------------sssssssssssssssssssssssss"
      "dddddddddddddddddddddddddhhhhhhhhhhhhhhhhhhhhhhhhhbbbbbbbbbbbbbbbbbbbbbbbbb-------------------------"
      "----------------------------------------------------------------------------------------------------"
      "-------------------------" },
    { "nll_loss", "2x3,2,-", "reduction=mean",
      "----s----d----h----b-----" },
    { "nll_loss", "2x3,2,-", "reduction=none",
      "----s----d----h----b-----" },
    { "nll_loss", "2x3,2,3", "reduction=mean",
      "--------------------s-------------------------d-------------------------h-------------------------b-"
      "-------------------------" },
    { "nll_loss", "2x3,2,3", "reduction=none",
      "--------------------s-------------------------d-------------------------h-------------------------b-"
      "-------------------------" },
    { "cross_entropy", "2x3,2,-", "reduction=mean",
      "----s----d----h----b-----" },
    { "cross_entropy", "2x3,2,-", "reduction=none",
      "----s----d----h----b-----" },
    { "cross_entropy", "2x3,2,3", "reduction=mean",
      "--------------------s-------------------------d-------------------------h-------------------------b-"
      "-------------------------" },
    { "cross_entropy", "2x3,2,3", "reduction=none",
      "--------------------s-------------------------d-------------------------h-------------------------b-"
      "-------------------------" },
    { "cross_entropy", "2x3,2,3", "reduction=mean label_smoothing=0.1",
      "--------------------s-------------------------d-------------------------h-------------------------b-"
      "-------------------------" },
    { "cross_entropy", "2x3,2,3", "reduction=none label_smoothing=0.1",
      "--------------------s-------------------------d-------------------------h-------------------------b-"
      "-------------------------" },
    { "cross_entropy_probabilities", "2x3,2x3,-", "reduction=mean",
      "sdss-dddd-sdhs-sdsb------" },
    { "cross_entropy_probabilities", "2x3,2x3,-", "reduction=none",
      "sdss-dddd-sdhs-sdsb------" },
    { "cross_entropy_probabilities", "2x3,2x3,3", "reduction=mean",
      "sdsssdddddsdssssdsss-----dddddddddddddddddddd-----sdsssdddddsdhshsdsss-----sdsssdddddsdssssdsbb-----"
      "-------------------------" },
    { "cross_entropy_probabilities", "2x3,2x3,3", "reduction=none",
      "sdsssdddddsdssssdsss-----dddddddddddddddddddd-----sdsssdddddsdhshsdsss-----sdsssdddddsdssssdsbb-----"
      "-------------------------" },
    { "linear_cross_entropy", "2x3,4x3,2,4,-", "reduction=mean",
      "--------------------s-------------------------------------------------------------------------------"
      "-----------------------------------------------------------------------d----------------------------"
      "----------------------------------------------------------------------------------------------------"
      "----------------------h-----------------------------------------------------------------------------"
      "-------------------------------------------------------------------------b--------------------------"
      "----------------------------------------------------------------------------------------------------"
      "-------------------------" },
    { "linear_cross_entropy", "2x3,4x3,2,4,-", "reduction=none",
      "--------------------s-------------------------------------------------------------------------------"
      "-----------------------------------------------------------------------d----------------------------"
      "----------------------------------------------------------------------------------------------------"
      "----------------------h-----------------------------------------------------------------------------"
      "-------------------------------------------------------------------------b--------------------------"
      "----------------------------------------------------------------------------------------------------"
      "-------------------------" },
    { "linear_cross_entropy", "2x3,4x3,2,-,4", "reduction=mean",
      "--------------------s-------------------------------------------------------------------------------"
      "-----------------------------------------------------------------------d----------------------------"
      "----------------------------------------------------------------------------------------------------"
      "----------------------h-----------------------------------------------------------------------------"
      "-------------------------------------------------------------------------b--------------------------"
      "----------------------------------------------------------------------------------------------------"
      "-------------------------" },
    { "linear_cross_entropy", "2x3,4x3,2,-,4", "reduction=none",
      "--------------------s-------------------------------------------------------------------------------"
      "-----------------------------------------------------------------------d----------------------------"
      "----------------------------------------------------------------------------------------------------"
      "----------------------h-----------------------------------------------------------------------------"
      "-------------------------------------------------------------------------b--------------------------"
      "----------------------------------------------------------------------------------------------------"
      "-------------------------" },
    { "linear_cross_entropy", "2x3,4x3,2x4,-,4", "reduction=mean",
      "sdsssdddddsdssssdsss--------------------------------------------------------------------------------"
      "--------------------------------------------------dddddddddddddddddddd------------------------------"
      "----------------------------------------------------------------------------------------------------"
      "sdsssdddddsdhshsdsss--------------------------------------------------------------------------------"
      "--------------------------------------------------sdsssdddddsdssssdsbb------------------------------"
      "----------------------------------------------------------------------------------------------------"
      "-------------------------" },
    { "linear_cross_entropy", "2x3,4x3,2x4,-,4", "reduction=none",
      "sdsssdddddsdssssdsss--------------------------------------------------------------------------------"
      "--------------------------------------------------dddddddddddddddddddd------------------------------"
      "----------------------------------------------------------------------------------------------------"
      "sdsssdddddsdhshsdsss--------------------------------------------------------------------------------"
      "--------------------------------------------------sdsssdddddsdssssdsbb------------------------------"
      "----------------------------------------------------------------------------------------------------"
      "-------------------------" },
    { "gaussian_nll_loss", "2x3,2x3,2x3", "reduction=mean",
      "sdss-dddd-sdss-sdss-sdss-dddd-dddd-dddd-dddd-dddd-sdss-dddd-sdhs-sdss-sdhs-sdss-dddd-sdss-sdsb-sdsb-"
      "sdss-dddd-sdhs-sdsb-sdhb-" },
    { "gaussian_nll_loss", "2x3,2x3,2x3", "reduction=none",
      "sdss-dddd-sdss-sdss-sdss-dddd-dddd-dddd-dddd-dddd-sdss-dddd-sdhs-sdss-sdhs-sdss-dddd-sdss-sdsb-sdsb-"
      "sdss-dddd-sdhs-sdsb-sdhb-" },
    { "gaussian_nll_loss", "2x3,2x3,2x3", "reduction=mean full=1",
      "sdss-dddd-sdss-sdss-sdss-dddd-dddd-dddd-dddd-dddd-sdss-dddd-sdhs-sdss-sdhs-sdss-dddd-sdss-sdsb-sdsb-"
      "sdss-dddd-sdhs-sdsb-sdhb-" },
    { "gaussian_nll_loss", "2x3,2x3,2x3", "reduction=none full=1",
      "sdss-dddd-sdss-sdss-sdss-dddd-dddd-dddd-dddd-dddd-sdss-dddd-sdhs-sdss-sdhs-sdss-dddd-sdss-sdsb-sdsb-"
      "sdss-dddd-sdhs-sdsb-sdhb-" },
    { "poisson_nll_loss", "2x3,2x3", "reduction=mean",
      "sdsssdddddsdhshsdsbbsdsss" },
    { "poisson_nll_loss", "2x3,2x3", "reduction=none",
      "sdsssdddddsdhshsdsbbsdsss" },
    { "poisson_nll_loss", "2x3,2x3", "reduction=mean log_input=0",
      "sdsssdddddsdhshsdsbbsdsss" },
    { "poisson_nll_loss", "2x3,2x3", "reduction=none log_input=0",
      "sdsssdddddsdhshsdsbbsdsss" },
    { "poisson_nll_loss", "2x3,2x3", "reduction=mean full=1",
      "sdsssdddddsdhshsdsbbsdsss" },
    { "poisson_nll_loss", "2x3,2x3", "reduction=none full=1",
      "sdsssdddddsdhshsdsbbsdsss" },
    { "hinge_embedding_loss", "2x3,2x3", "reduction=mean",
      "sssssdddddhhhhhbbbbb-----" },
    { "hinge_embedding_loss", "2x3,2x3", "reduction=none",
      "sssssdddddhhhhhbbbbblllll" },
    { "margin_ranking_loss", "2x3,2x3,2x3", "reduction=mean",
      "sdsssdddddsdssssdssssdsssdddddddddddddddddddddddddsdsssdddddsdhshsdssssdhshsdsssdddddsdssssdsbbsdsbb"
      "sdsssdddddsdhshsdsbbsdhbs" },
    { "margin_ranking_loss", "2x3,2x3,2x3", "reduction=none",
      "sdsssdddddsdssssdssssdsssdddddddddddddddddddddddddsdsssdddddsdhshsdssssdhshsdsssdddddsdssssdsbbsdsbb"
      "sdsssdddddsdhshsdsbbsdhbs" },
    { "cosine_embedding_loss", "2x3,2x3,2", "reduction=mean",
      "sssssdddddsssssssssssssssdddddddddddddddddddddddddsssssdddddhhhhhsssssssssssssssdddddsssssbbbbbsssss"
      "sssssdddddsssssssssssssss" },
    { "cosine_embedding_loss", "2x3,2x3,2", "reduction=none",
      "sssssdddddsssssssssssssssdddddddddddddddddddddddddsssssdddddhhhhhsssssssssssssssdddddsssssbbbbbsssss"
      "sssssdddddsssssssssssssss" },
    { "triplet_margin_loss", "2x3,2x3,2x3", "reduction=mean",
      "sdsssdddddsdssssdssssdsssdddddddddddddddddddddddddsdsssdddddsdhshsdssssdhshsdsssdddddsdssssdsbbsdsbb"
      "sdsssdddddsdhsssdsbssdsss" },
    { "triplet_margin_loss", "2x3,2x3,2x3", "reduction=none",
      "sdsssdddddsdssssdssssdsssdddddddddddddddddddddddddsdsssdddddsdhshsdssssdhshsdsssdddddsdssssdsbbsdsbb"
      "sdsssdddddsdhsssdsbssdsss" },
    { "soft_margin_loss", "2x3,2x3", "reduction=mean",
      "sssssdddddhhhhhbbbbb-----" },
    { "soft_margin_loss", "2x3,2x3", "reduction=none",
      "sssssdddddhhhhhbbbbb-----" },
    { "multilabel_soft_margin_loss", "2x3,2x3,-", "reduction=mean",
      "sdsssdddddsdhshsdsbb-----" },
    { "multilabel_soft_margin_loss", "2x3,2x3,-", "reduction=none",
      "sdsssdddddsdhshsdsbb-----" },
    { "multilabel_soft_margin_loss", "2x3,2x3,3", "reduction=mean",
      "sdsssdddddsdssssdssssdsssdddddddddddddddddddddddddsdsssdddddsdhshsdssssdhshsdsssdddddsdssssdsbbsdsbb"
      "-------------------------" },
    { "multilabel_soft_margin_loss", "2x3,2x3,3", "reduction=none",
      "sdsssdddddsdssssdssssdsssdddddddddddddddddddddddddsdsssdddddsdhshsdssssdhshsdsssdddddsdssssdsbbsdsbb"
      "-------------------------" },
    { "multi_margin_loss", "2x3,2,-", "reduction=mean",
      "----s----d----h----b-----" },
    { "multi_margin_loss", "2x3,2,-", "reduction=none",
      "----s----d----h----b-----" },
    { "multi_margin_loss", "2x3,2,3", "reduction=mean",
      "--------------------s-------------------------d-------------------------h-------------------------b-"
      "-------------------------" },
    { "multi_margin_loss", "2x3,2,3", "reduction=none",
      "--------------------s-------------------------d-------------------------h-------------------------b-"
      "-------------------------" },
    { "multilabel_margin_loss", "2x3,2x3", "reduction=mean",
      "----s----d----h----b-----" },
    { "multilabel_margin_loss", "2x3,2x3", "reduction=none",
      "----s----d----h----b-----" },
    { "ctc_loss", "2x1x3,1x1,1,1", "reduction=mean",
      "----------------------------------------------------------------------------------------------------"
      "------------------------s---------------------------------------------------------------------------"
      "-------------------------------------------------d--------------------------------------------------"
      "--------------------------------------------------------------------------h-------------------------"
      "---------------------------------------------------------------------------------------------------b"
      "----------------------------------------------------------------------------------------------------"
      "-------------------------" },
    { "ctc_loss", "2x1x3,1x1,1,1", "reduction=none",
      "----------------------------------------------------------------------------------------------------"
      "------------------------s---------------------------------------------------------------------------"
      "-------------------------------------------------d--------------------------------------------------"
      "--------------------------------------------------------------------------h-------------------------"
      "---------------------------------------------------------------------------------------------------b"
      "----------------------------------------------------------------------------------------------------"
      "-------------------------" },
};
